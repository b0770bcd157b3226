/** Introduction of the contract: the rules for every request. */

/** Markdown. */
export function overview(maxValueBytes: number): string {
  return `A local vault server: secrets, encrypted at rest, under hierarchical paths.

**Bodies.** Requests and responses are JSON, except the text of \`GET /v1/metrics\`. A request body is parsed as JSON whatever its Content-Type says, and must not
be compressed; unknown fields are ignored. A value has at most ${maxValueBytes} bytes of UTF-8 and a body at most
${6 * maxValueBytes + 64 * 1024}; a batch has a limit of its own. All follow from the server's settings.

**Token.** Every endpoint except \`GET /v1/status\` requires \`Authorization: Bearer <token>\`: the root token, or a client
token whose scopes and paths cover the request. After 10 wrong tokens from one
address within a minute, that address is locked out for 5 minutes (429 with \`Retry-After\`).

**Order of checks.** Host, Origin and Sec-Fetch-Site (400), lockout (429), token (401), unknown endpoint or method (404),
shutting down (503), a client token's scopes (403), vault locked (403), path, query and body (400), a client token's paths
(403), then the operation itself. No byte of a body is read before the token is accepted.

**Other sites.** A \`Host\` that does not name this server, an \`Origin\` that is not its own, and a \`Sec-Fetch-Site\` other than
\`none\` or \`same-origin\` are refused with 400.

**Connections.** Pipelined requests are served one after the other. A quarter of the connections is for clients that have
not presented a valid token yet; beyond that, the oldest of them is closed. A response that makes no progress for 30
seconds ends its connection.

**Conditions.** A tag names one state of a secret. \`If-Match\` and \`If-None-Match\` (RFC 9110) are judged after everything
else, when no other change of the secret can come between: of several writers with the same tag, exactly one succeeds and
the others get 412. A malformed header is 400.

**Unknown operations.** A path or method that is not listed here gets 404 \`NOT_FOUND\`; where the path exists, \`Allow\`
lists its methods. \`HEAD\` and \`OPTIONS\` are not supported.

**Malformed HTTP.** What is not valid HTTP/1.1, is too slow, has more than 8192 bytes of headers, or is a \`CONNECT\`, never
becomes a request: it gets 400 \`BAD_REQUEST\` in the usual form, and the connection closes.

**Failures.** A 500 or 503 has a \`requestId\`, which identifies the request in the server's log. On an unexpected failure any
operation may return 500 \`INTERNAL\`.
`;
}
