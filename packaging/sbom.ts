/** Software bill of materials of the program (CycloneDX 1.6, JSON). The same program gives the same bytes. */
import { createHash } from "node:crypto";
import { readManifest } from "../src/manifest.js";
import { type BundledPackage, bundledPackages } from "./bundled-packages.js";

export function renderSbom(): string {
  const { version, description } = readManifest();
  const packages = bundledPackages();
  const components = packages.map(sbomComponent);
  const program = { type: "application", name: "strongroom", version, description, licenses: licences("MIT") };
  const root = { "bom-ref": packageUrl("strongroom", version), purl: packageUrl("strongroom", version), ...program };
  const contains = components.map((one) => one["bom-ref"]);
  const bom = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${contentUuid(JSON.stringify([root, components]))}`,
    version: 1,
    metadata: { component: root },
    components,
    dependencies: [{ ref: root["bom-ref"], dependsOn: contains }],
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

function sbomComponent({ name, version, licence, integrity }: BundledPackage) {
  const purl = packageUrl(name, version);
  const content = Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex");
  const hashes = [{ alg: "SHA-512", content }];
  return { type: "library", "bom-ref": purl, name, version, purl, licenses: licences(licence), hashes };
}

/** A single licence has an id; anything else is an expression. */
function licences(spdx: string): readonly object[] {
  return /^[\w.+-]+$/.test(spdx) ? [{ license: { id: spdx } }] : [{ expression: spdx }];
}

function packageUrl(name: string, version: string): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** Version 8 (RFC 9562): of the content instead of chance, so that a build can be repeated. */
function contentUuid(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const variant = ((Number.parseInt(hex[16] ?? "0", 16) & 3) | 8).toString(16);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, variant + hex.slice(17, 20)];
  return [...parts, hex.slice(20, 32)].join("-");
}
