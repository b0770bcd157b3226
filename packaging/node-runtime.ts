/** The Node that the tarball and the .deb contain, as its package in the npm registry has it. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export type Arch = "x64" | "arm64";

export const nodeVersion = "26.10.0";

/** SHA-512 of the registry's archives. */
const integrity: Readonly<Record<Arch, string>> = {
  x64: "OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==",
  arm64: "idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==",
};

/** Downloads Node's archive into `directory` by npm; returns the file. @throws Error when it is not the one expected */
export function fetchNode(arch: Arch, directory: string): string {
  const args = ["pack", `node-linux-${arch}@${nodeVersion}`, "--silent", "--pack-destination", directory];
  const file = join(directory, execFileSync("npm", args, { encoding: "utf8" }).trim());
  const found = createHash("sha512").update(readFileSync(file)).digest("base64");
  if (found !== integrity[arch]) throw new Error(`${file} is not Node ${nodeVersion} as it was when it was chosen`);
  return file;
}
