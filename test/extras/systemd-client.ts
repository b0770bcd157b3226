/** Reading of a socket as systemd does it for LoadCredential. */
import { spawn } from "node:child_process";
import { collect, type Ended } from "../../tools/rig/process.js";

/** Binds an abstract name, connects, ends its own side, and reads to the end: what strace shows of systemd 252. */
const program = `
import os, socket, sys
client = socket.socket(socket.AF_UNIX)
client.bind(b"\\0%x/unit/test.service/" % int.from_bytes(os.urandom(8), "big") + os.path.basename(sys.argv[1]).encode())
client.connect(sys.argv[1])
client.shutdown(socket.SHUT_WR)
while part := client.recv(4096): sys.stdout.buffer.write(part)
`;

/** Needs Python: Node cannot bind a socket that connects. */
export function loadCredential(path: string): Promise<Ended> {
  return collect(
    spawn("python3", ["-c", program, path], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 60_000,
      killSignal: "SIGKILL",
    }),
  ).ended;
}
