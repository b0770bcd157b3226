/** Times for people, in this machine's time zone. */

/** Returns `14:05:09`, with the date unless it is today's: `2026-03-01 14:05:09`. */
export function localTime(time: Date, now = new Date()): string {
  const [date, clock] = [dateOf(time), timeOf(time)];
  return date === dateOf(now) ? clock : `${date} ${clock}`;
}

function dateOf(time: Date): string {
  return [time.getFullYear(), time.getMonth() + 1, time.getDate()].map(twoDigits).join("-");
}

function timeOf(time: Date): string {
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(":");
}

function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}
