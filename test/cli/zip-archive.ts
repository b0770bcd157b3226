/** ZIP archives as other programs write them. */
import { crc32, deflateRawSync } from "node:zlib";

type Options = { readonly method?: number; readonly flags?: number };

/** `method`: 8 deflates the members, 0 stores them; with any other, each is packed already. */
export function makeZip(
  members: Readonly<Record<string, string | Buffer>>,
  { method = 8, flags = 0 }: Options = {},
): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [name, given] of Object.entries(members)) {
    const content = Buffer.from(given);
    const packed = method === 8 ? deflateRawSync(content) : content;
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    const member = Buffer.concat([Buffer.from("PK\u0003\u0004"), common, Buffer.from(name), packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([Buffer.from("PK\u0001\u0002\u0014\u0000"), common, rest, Buffer.from(name)]));
    parts.push(member);
    at += member.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", "latin1");
  for (const place of [8, 10]) end.writeUInt16LE(directory.length, place);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, entries, end]);
}
