/** Owns the contract's opening text: the rules that hold for every request. */

/** Markdown. */
export function overview(maxValueBytes: number): string {
  return `A local vault server: secrets, encrypted at rest, by hierarchical paths.

**Bodies.** Requests and answers are JSON. A request's body is read as JSON whatever its Content-Type says, and must not be
compressed; fields that are not known are ignored. A value has at most ${maxValueBytes} bytes of UTF-8 and a body at most
${6 * maxValueBytes + 64 * 1024}: both follow the server's setting.

**Token.** Everything but \`GET /v1/status\` needs \`Authorization: Bearer <token>\`. After 10 wrong tokens from one address
within a minute, that address is refused for 5 minutes (429, with \`Retry-After\`).

**Order.** Host and Origin (400), address locked out (429), token (401), unknown endpoint or method (404), shutting down
(503), vault locked (403), path, query and body (400), then what the operation itself says. No byte of a body is read
before the token is accepted.

**Other sites.** A \`Host\` that does not name this server, or an \`Origin\` that is not its own, is refused with 400.

**No operation.** A path or a method that is not listed here is answered with 404 \`NOT_FOUND\`; where the path exists,
\`Allow\` lists its methods. \`HEAD\` and \`OPTIONS\` are not offered.

**Broken HTTP.** What is not valid HTTP/1.1, is too slow, has more than 8192 bytes of headers, or is a \`CONNECT\`, never
becomes a request: it is answered with 400 \`BAD_REQUEST\` in the usual form, with few headers, and the connection ends.

**Failures.** A 500 or 503 carries a \`requestId\`, under which the server's log has more. Should something fail that
nobody foresaw, any operation may answer 500 \`INTERNAL\`.
`;
}
