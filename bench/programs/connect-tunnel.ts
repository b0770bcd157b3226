/** A plain CONNECT proxy: bytes in both directions, which it does not look at. */
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";

const server = createServer().on("connect", ({ url = "" }, near, head) => {
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(url) ?? [];
  const far = connect(Number(port), host, () => near.write("HTTP/1.1 200 OK\r\n\r\n"));
  far.write(head);
  near.pipe(far).pipe(near);
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const)
    one.on("error", () => other.destroy()).on("close", () => other.destroy());
});

server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
