/** Commands for OpenBao's command line, run in this order against both servers. */
export const baoCommands: readonly string[] = [
  "kv put secret/app/a user=ann password=s3cret",
  "kv get secret/app/a",
  "kv get -field=password secret/app/a",
  "kv get -format=json secret/app/a",
  "kv put secret/app/a user=bob",
  "kv get -version=1 secret/app/a",
  "kv patch secret/app/a extra=1",
  "kv get -format=json secret/app/a",
  "kv put -cas=1 secret/app/a user=x",
  "kv put -cas=3 secret/app/a user=cas",
  "kv put secret/app/ü/b text=ünïcode",
  "kv get -field=text secret/app/ü/b",
  "kv list secret/",
  "kv list secret/app",
  "kv list secret/none",
  "kv get secret/none",
  "kv metadata put -custom-metadata=team=db secret/app/a",
  "kv metadata get secret/app/a",
  "kv delete secret/app/a",
  "kv get secret/app/a",
  "kv undelete -versions=4 secret/app/a",
  "kv get -field=user secret/app/a",
  "kv destroy -versions=2 secret/app/a",
  "kv rollback -version=1 secret/app/a",
  "kv get secret/app/a",
  "kv metadata get -format=json secret/app/a",
  "kv metadata delete secret/app/a",
  "kv get secret/app/a",
  "write -f transit/keys/orders",
  "read transit/keys/orders",
  "list transit/keys",
  "write transit/encrypt/orders plaintext=aGVsbG8=",
  "write transit/decrypt/none ciphertext=vault:v1:AAAA",
  "write transit/decrypt/orders ciphertext=nonsense",
  "write transit/decrypt/orders ciphertext=vault:v9:AAAA",
  "write -f transit/keys/orders/rotate",
  "write transit/keys/orders/config min_decryption_version=2",
  "write transit/keys/signer type=ed25519",
  "write transit/sign/signer input=aGVsbG8=",
  "write transit/sign/orders input=aGVsbG8=",
  "write transit/hmac/orders/sha2-512 input=aGVsbG8=",
  "write transit/datakey/wrapped/orders bits=128",
  "write transit/datakey/plaintext/orders",
  "write transit/random/16 format=hex",
  "write transit/hash/sha2-256 input=aGVsbG8=",
  "read transit/keys/none",
  "read transit/export/encryption-key/orders",
  "delete transit/keys/orders",
  "write transit/keys/orders/config deletion_allowed=true",
  "delete transit/keys/orders",
];

/**
 * Makes two outputs of a command comparable: without what differs between any two servers, and without fields that OpenBao
 * has and Vault does not.
 */
export function comparable(output: string): string {
  return output
    .replace(/^.*(?:soft_deleted|current_metadata_version|metadata_cas_required).*\n/gm, "")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/vault:v(\d+):[A-Za-z0-9+/=]+/g, "vault:v$1:…")
    .replace(/("request_id": )"[^"]*"/g, "$1…")
    .replace(/https?:\/\/[a-z0-9.]+:\d+/g, "URL")
    .replace(/(map\[1:|"1": )1\d{9}/g, "$1TIME")
    .replace(/public_key:[A-Za-z0-9+/=]{44}/g, "public_key:…")
    .replace(/^((?:random_bytes|plaintext) +)\S+$/gm, "$1…")
    .replace(/^[=-]+( \w+ )?[=-]*$/gm, "$1")
    .replace(/ {2,}/g, "  ");
}
