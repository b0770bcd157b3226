/** Hang-up signal that was ignored at start, as by `nohup`: Node resets it, so `bin/strongroom.cjs` passes it in a variable. */

const variable = "STRONGROOM_SIGHUP";

export const hangUpIgnored = process.env[variable] === "ignored";

delete process.env[variable]; // commands that are started get the signal as usual
if (hangUpIgnored) process.on("SIGHUP", () => {});
