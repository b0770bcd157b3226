/** Times for people: in this machine's zone, with its offset from UTC as in RFC 3339. */

/** Returns `14:05:09+01:00`, with the date unless it is today's: `2026-03-01 14:05:09+01:00`. */
export function localTime(time: Date, now = new Date()): string {
  const { date, clock, zone } = partsOf(time);
  const shown = `${clock.slice(0, 8)}${zone}`;
  return date === partsOf(now).date ? shown : `${date} ${shown}`;
}

/** Returns `2026-03-01 14:05+01:00`, which does not get shorter on the same day: for tables. */
export function localMinute(time: Date): string {
  const { date, clock, zone } = partsOf(time);
  return `${date} ${clock.slice(0, 5)}${zone}`;
}

/** Returns `2026-03-01 14:05:09.123+01:00`. */
export function localMillisecond(time: Date): string {
  const { date, clock, zone } = partsOf(time);
  return `${date} ${clock}${zone}`;
}

/** Returns `2026-03-01`. */
export function localDate(time: Date): string {
  return partsOf(time).date;
}

function partsOf(time: Date) {
  const offset = -time.getTimezoneOffset();
  const [date = "", clock = ""] = new Date(time.getTime() + offset * 60_000).toISOString().slice(0, -1).split("T");
  return { date, clock, zone: offset === 0 ? "Z" : zoneOf(offset) };
}

function zoneOf(offset: number): string {
  const minutes = Math.abs(offset);
  const [hour, minute] = [Math.floor(minutes / 60), minutes % 60].map((number) => String(number).padStart(2, "0"));
  return `${offset < 0 ? "-" : "+"}${hour}:${minute}`;
}
