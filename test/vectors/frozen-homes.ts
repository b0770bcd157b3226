/** Homes as earlier versions left them, made by running these: every later version opens them. Files in base64. */

/** The vault is locked, and its passphrase the tests'. `key`: a recovery key. */
export type FrozenHome = {
  readonly made: string;
  readonly key: string | null;
  readonly versions: boolean;
  /** A secret in the trash, "plain ☃" under the key `seal`, and a signature of "signed" by the key `sign`. */
  readonly spaces?: { readonly trashed: string; readonly ciphertext: string; readonly signature: string };
  readonly files: Readonly<Record<string, string>>;
};

export const frozenHomes: readonly FrozenHome[] = [
  {
    made: "the first version of the repository",
    key: null,
    versions: false,
    files: {
      "vault/current": ["Z2VuLTEK"].join(""),
      "vault/gen-1/header.json": [
        "eyJmb3JtYXQiOiJzdHJvbmdyb29tIiwidmVyc2lvbiI6MSwidmF1bHRJZCI6Ik80VFhSUTMycGVwVDA5aDRmcVBqdkEiLCJjcmVh",
        "dGVkQXQiOiIyMDI2LTExLTIzVDA0OjIxOjM5LjE4OVoiLCJrZGYiOnsibmFtZSI6InNjcnlwdCIsImxvZ04iOjE0LCJyIjo4LCJw",
        "IjoxLCJzYWx0IjoiQWptQ1hkSUM3bUpqX2hWNV92QmRRQSJ9LCJ3cmFwcGVkS2V5IjoieG9FNG1OTVh0VWN5b19yYi1KeTFyOFBW",
        "TWxLbnl6aHNBbUp3aTdick1HVSIsIm1hYyI6IkFHdTdvQk8xLXdtZjdOenl1SURjb2ZpZHlzUXlKOTRndWtTU1RTbkxxNncifQo=",
      ].join(""),
      "vault/gen-1/secrets/%c3%9cmlaut%20%42.sealed": [
        "U1JWQgEAAACF8Lzj3BSAe6gthtx8rb0o9Fz5Cgogx9n2GvoNcFQjicQGo9pUJHSA8TJK75brI2v9dtJjiupl+TBwSlz1HQSTFgXY",
        "GnWu+SAPundn+jnfpJ88M3f/RlZypgO0upUNdAZMMXj7Fb8Yiq9ehA3WhaLswvS2aI0Oqg7gZi+JuKUAH+rcXFoZ1z4zgJ1F/vIt",
        "yIWX0lvPqhCD0jzZ0jUzbmsQB5H9LByvyToK1BSiXL/VXX9P22hckDOF9+w=",
      ].join(""),
      "vault/gen-1/secrets/app/db/password.sealed": [
        "U1JWQgEAAAC2nu/06olunXiNQjmZpyXGqaoVt6yGTUOtCL6vCC8bcvxPGEIhPqJ3s7cTdt7hZUjS/v4ZbLUNjo6KnKv922Rtp8Rb",
        "WKKzgyLYyS1jbhcQvA3JL5JCyENXU6CMZ3Ij06s8XUmQt0SBprit7N+ZIRT4YgiDOguljSYdyHWtGbe90IR2tKkU70H042IIxFH5",
        "fWIYm+6bjv4CoG/huRg8AYkAs71WRide894v19B3HkaKS4mU9jh6CTBM8nBEs/+PWt7B+T78oWUdO31DUIul72f7AhkXnCUCns9l",
        "aAYttwvjALYMVDB25Z1b6Cw/7sE=",
      ].join(""),
    },
  },
  {
    made: "a version with keys, history, client tokens and an audit log",
    key: "SRK-1X9H6-FB6YN-10YAT-EH2AG-HKT5H-94N2V-8KGX7-GB8TX-59374-XN730-GKTD9-4AMJQ-4FE02",
    versions: true,
    files: {
      "audit/audit-000001.jsonl": [
        "eyJmb3JtYXQiOiJzdHJvbmdyb29tIGF1ZGl0IiwidmVyc2lvbiI6MSwiZmlsZSI6MSwibG9nIjoicWhjbnh4MzdLUVRaakRSVTRf",
        "MEkzQSIsInNlcSI6MSwiY2hhaW4iOiJWd0gtVWhxSnkxWnBxeE9YcWNUUWRpb1VLZUZRdTMxTThnNUI5b2p1aFRrIn0KeyJzZXEi",
        "OjEsInRpbWUiOiIyMDI2LTExLTIzVDA0OjIxOjQ1Ljg1OFoiLCJldmVudCI6InN0YXJ0In0KeyJjaGFpbiI6ImNKV2x4SWZnUUd3",
        "Z0pSN2YzcEdRa2pZX1ZveU13WTBJQU1xdThlckV2cFkifQp7InNlcSI6MiwidGltZSI6IjIwMjYtMTEtMjNUMDQ6MjE6NDYuMjE5",
        "WiIsImV2ZW50IjoiY2hlY2twb2ludCIsInJlYXNvbiI6InVubG9jayIsImtleSI6IkdjLVRwc1BJR2N0TiIsIm1hYyI6InFXd2w3",
        "TkQzcV96djdRWVZURWFidkdsdzVwRV94MDRkTWYzZlV4aUUzREkifQp7ImNoYWluIjoiLVJ5R0JUQXgtcjhneVd4XzI2eVk5MGl5",
        "SWlfREtaMnVIeFV0b2QxUldHVSJ9Cnsic2VxIjozLCJ0aW1lIjoiMjAyNi0xMS0yM1QwNDoyMTo0Ni4yMjhaIiwiZXZlbnQiOiJp",
        "bml0IiwidG9rZW4iOiJyb290IiwiYWRkcmVzcyI6IjEyNy4wLjAuMSIsInN0YXR1cyI6MjAwfQp7ImNoYWluIjoiMk14c2w4Y1Et",
        "Sl9sbTdCQU9nU3dxUWMyUmszWTZTTUppQTNySUVmQUZSNCJ9Cnsic2VxIjo0LCJ0aW1lIjoiMjAyNi0xMS0yM1QwNDoyMTo0Ni4z",
        "MzNaIiwiZXZlbnQiOiJwdXQiLCJ0b2tlbiI6InJvb3QiLCJhZGRyZXNzIjoiMTI3LjAuMC4xIiwicGF0aCI6ImFwcC9kYi9wYXNz",
        "d29yZCIsImV0YWciOiJRR2VTWTVmOVFoLTh2d1BQIiwic3RhdHVzIjoyMDB9CnsiY2hhaW4iOiI4NXN3TEMzdm1LTTZIWU9SWmE3",
        "S0llOGpfaHR2eG1CeEppc3BsTHA0Q3RFIn0KeyJzZXEiOjUsInRpbWUiOiIyMDI2LTExLTIzVDA0OjIxOjQ2LjY1NVoiLCJldmVu",
        "dCI6InB1dCIsInRva2VuIjoicm9vdCIsImFkZHJlc3MiOiIxMjcuMC4wLjEiLCJwYXRoIjoiYXBwL2RiL3Bhc3N3b3JkIiwiZXRh",
        "ZyI6Ik1RUVNQUV9IaE1yOGlRMlIiLCJzdGF0dXMiOjIwMH0KeyJjaGFpbiI6IllpVlM0OVJ2NW5UNVEzT3NITFBlLVVmcDFhMDd4",
        "UEsyYXp2dURVMlhzSEkifQp7InNlcSI6NiwidGltZSI6IjIwMjYtMTEtMjNUMDQ6MjE6NDYuODQxWiIsImV2ZW50IjoicHV0Iiwi",
        "dG9rZW4iOiJyb290IiwiYWRkcmVzcyI6IjEyNy4wLjAuMSIsInBhdGgiOiLDnG1sYXV0IEIiLCJldGFnIjoiUTRKQVRxZ09GcC1r",
        "VlFnZCIsInN0YXR1cyI6MjAwfQp7ImNoYWluIjoiaVMtZzBNMmZiRFpidkxSS2xGWWNPejJMTHRheTl5V2g2Qm42TzJhQXRObyJ9",
        "Cnsic2VxIjo3LCJ0aW1lIjoiMjAyNi0xMS0yM1QwNDoyMTo0Ny4wNTdaIiwiZXZlbnQiOiJrZXktY3JlYXRlIiwidG9rZW4iOiJy",
        "b290IiwiYWRkcmVzcyI6IjEyNy4wLjAuMSIsInN0YXR1cyI6MjAwfQp7InNlcSI6OCwidGltZSI6IjIwMjYtMTEtMjNUMDQ6MjE6",
        "NDcuMTA0WiIsImV2ZW50IjoidG9rZW4tY3JlYXRlIiwidG9rZW4iOiJyb290IiwiYWRkcmVzcyI6IjEyNy4wLjAuMSIsIm5hbWUi",
        "OiJjaSIsInN0YXR1cyI6MjAwfQp7ImNoYWluIjoiVE9ieko3Tzgwc0FEWUx6UVVjSjlzUEU4TS02c2E5MUZ6RUtBdWpZYjZ5ZyJ9",
        "Cnsic2VxIjo5LCJ0aW1lIjoiMjAyNi0xMS0yM1QwNDoyMTo0Ny4yNThaIiwiZXZlbnQiOiJsb2NrZWQiLCJyZWFzb24iOiJyZXF1",
        "ZXN0In0KeyJjaGFpbiI6Ii1rNmtuNnlmUC02VENaYVVvdDVHbEEtMklvaHpKZXZHN1AxS3k4dVNCZEEifQp7InNlcSI6MTAsInRp",
        "bWUiOiIyMDI2LTExLTIzVDA0OjIxOjQ3LjI1OFoiLCJldmVudCI6ImNoZWNrcG9pbnQiLCJyZWFzb24iOiJsb2NrIiwia2V5Ijoi",
        "R2MtVHBzUElHY3ROIiwibWFjIjoiQTRZNHNWN0pfb3YyMGgyRUJhR0REV3VyTW8tSEV6QzM3VGZuem10bEhzcyJ9CnsiY2hhaW4i",
        "OiJxc3RZaXBpc2tPMWp4Q1B0bThhZF9VdDJwbGpqeWFhRzVZWm5FN2Q4c2drIn0KeyJzZXEiOjExLCJ0aW1lIjoiMjAyNi0xMS0y",
        "M1QwNDoyMTo0Ny4zMTFaIiwiZXZlbnQiOiJsb2NrIiwidG9rZW4iOiJyb290IiwiYWRkcmVzcyI6IjEyNy4wLjAuMSIsInN0YXR1",
        "cyI6MjAwfQp7InNlcSI6MTIsInRpbWUiOiIyMDI2LTExLTIzVDA0OjIxOjQ3LjMzOFoiLCJldmVudCI6InN0b3AifQp7ImNoYWlu",
        "IjoiblU3TzVDSG5xQVpqNUZuUVJPRzFqTFhrNk1Penk0bkRWSmxDdWtlYUphTSJ9Cg==",
      ].join(""),
      "vault/current": ["Z2VuLTEK"].join(""),
      "vault/gen-1/header.json": [
        "eyJmb3JtYXQiOiJzdHJvbmdyb29tIiwidmVyc2lvbiI6MiwidmF1bHRJZCI6IjYta1U2UFpneW5DUF9nOFVLV2xlanciLCJjcmVh",
        "dGVkQXQiOiIyMDI2LTExLTIzVDA0OjIxOjQ2LjEzNFoiLCJzbG90cyI6W3sia2luZCI6InBhc3NwaHJhc2UiLCJjcmVhdGVkQXQi",
        "OiIyMDI2LTExLTIzVDA0OjIxOjQ2LjEzNFoiLCJrZGYiOnsibmFtZSI6InNjcnlwdCIsImxvZ04iOjE0LCJyIjo4LCJwIjoxLCJz",
        "YWx0IjoiZ0o4NHhpSnozT1BUbDRMQmZzZHdldyJ9LCJ3cmFwcGVkS2V5IjoibmJBbHM4aUQtSWJGaElFSEVqYkFUWk1fZkpVZWRO",
        "LTlhTnZXMmR4SFRxUSIsImNoZWNrIjoiemRaRHJSaXJZTHZ1dGh0X2QxV0JwV19nSmU2U2FFQzFQcjhfcFotcmFOMCJ9LHsia2lu",
        "ZCI6ImtleSIsImlkIjoieDcwd2NmNzIiLCJsYWJlbCI6InJlY292ZXJ5IiwiY3JlYXRlZEF0IjoiMjAyNi0xMS0yM1QwNDoyMTo0",
        "Ni44NjlaIiwic2FsdCI6IkF3LU9WVEo5dDJGRHNKS2ozUS1iTkEiLCJ3cmFwcGVkS2V5IjoicFBZd25DdUV3bXVWeFRGM1p0OURy",
        "aE5zNFNXdFlIdkVub1pkcENYQ2h1TSIsImNoZWNrIjoiTTlfV1VEN202QmJJdmNWbmdCdm9LdmJXNWdTa0QwY3dIZjV4dWlJR1p2",
        "TSJ9XSwibWFjIjoiMHR0bmtLSkpHaEJZS1dneUJtWFJ4czdOT1FSY01jV0xtSVdZMzQwOFlOZyJ9Cg==",
      ].join(""),
      "vault/gen-1/tokens.document": [
        "eyJmb3JtYXQiOiJzdHJvbmdyb29tIHRva2VucyIsInZlcnNpb24iOjEsInRva2VucyI6W3sibmFtZSI6ImNpIiwiY2FuIjpbImdl",
        "dCJdLCJwYXRocyI6WyJhcHAvIl0sImNyZWF0ZWRBdCI6MTc5NTQwNzcwNzA4MywidHRsU2Vjb25kcyI6Nzc3NjAwMCwiZXhwaXJl",
        "c0F0IjoxODAzMTgzNzA3MDgzLCJkaWdlc3QiOiIzQm9RdmpBdTY3LUpRMzRjMzZlU1BJdHJSZGpXdjlkbENWaGZpNUF5UThFIiwi",
        "Zm9ybWVyIjpbXSwibWFjIjoiWkhlcDZLRks0Nlk2ZTJhVF9HNE5sNUE5YmhIQnlSVGxrdUpENjZ1V1c1ayIsImxhc3RVc2VkQXQi",
        "Om51bGx9XSwiZW5kZWQiOltdfQo=",
      ].join(""),
      "vault/gen-1/secrets/%c3%9cmlaut%20%42.sealed": [
        "U1JWQgIAAACRQ4JATqgOFp+kVQgd9CHffdRY7lhfP96BBFng5cixFToLd6HTxr7wCPWM6LKM0VCksIBGfnrzWCwxRYPkzkf1dA0J",
        "siQaEE/8IWvMCVQPkmjUgVl8MhbckkVSgW2TdbWdJOWg6zEMZBwl5NjCHJWHd6GauCAkbcnqbrBTBTvQ3YjoGI2bMDnSvw7i05KV",
        "5+05YQAAADQbM15DvlJuYJk2deUm6NiSpl7eYGuSvDwi9PnDU1PORsVK+JYgA6YnwB6Ks88lvc0o1s5E",
      ].join(""),
      "vault/gen-1/secrets/app/db/password.sealed": [
        "U1JWQgIAAADCMQQSPQ/HhMr8iQ2RB/r5EGKx/lzcoanVQxLzOvDL1tIVLQPN+fxTGc66c6TQvkGfZLD5bUdSK/kGNiiZEcfehBe7",
        "AguZIHDDL6NOyIxXloHUA7b8PQBoSg4I7oc/OKqMQU8joNaUio2SmpUchBP29znLeKr/uSvO/pT4djaEa3vVvVWl/rxUvhLTUsLx",
        "LpFzDQJRuR5N7HPN2Rrx3oAIS0kwwzma0xRnYnq7NUxpRGqCfQIuiRI2nIbOJJipSAvxbPsAAAA2XFmfSBw2qB2vwI7nUW+rAsP1",
        "cWicgf2kh4qSOI78yn/3LU/XFIJ3B6ZbUFj61kdFcotl1MdZAAAAkUBnkmOX/UIfvL8Dz/l6DKHZ+pWWYh7S/4vdkBdj24kzF/S+",
        "EsW02Aky+x4s271WexArJQCwrF+i7aKqlR7EIe/pcdgo+i7sPXmHRq/x0U9A9J9VlPJdbffFwn6Z/Fu883UrwqeIEOeF67Xryp25",
        "WHnWbf4QN5g2C0n1jxsNmzXlxggvcQvWAw9N1rvkRlFn/bsAAAA1TX2+RFPjym1s2j7WqyytpvW+Y2h9qZ8IwdzryTeEOl4hWhL6",
        "dBzcwuHQzH5rF1trsw/Yj6E=",
      ].join(""),
    },
  },
  {
    made: "a version with a trash and transit keys",
    key: "SRK-E3PR8-8YY1X-64AJC-85GKB-29E8A-QWK89-3KMGT-12TM4-GXHX9-6ERWN-ZCYPD-J7G27-JFHG5",
    versions: true,
    spaces: {
      trashed: "old/key",
      ciphertext: "vault:v1:RRB+Sdhb0vkjGpbJWYM+At1WuARrZslbHPHWS/3RBEIhIL2Dlg==",
      signature: "vault:v1:CgGWwL/InzEvIFEW1r6S09i4eDQ/KUcjjlX6mwecAXO2kvhChLYWCM4SYKZtoA+wGvBS96aJZmqAhWEqI8cuCQ==",
    },
    files: {
      "vault/current": ["Z2VuLTEK"].join(""),
      "vault/gen-1/expiry.document": ["bm9uZQ=="].join(""),
      "vault/gen-1/header.json": [
        "eyJmb3JtYXQiOiJzdHJvbmdyb29tIiwidmVyc2lvbiI6MiwidmF1bHRJZCI6IkNhN1RNa0E2LU5mUWhKNXZsOV91QnciLCJjcmVh",
        "dGVkQXQiOiIyMDI2LTExLTIzVDExOjM3OjEzLjU1NVoiLCJzcGFjZXMiOlsic2VjcmV0cyIsInRyYXNoIiwia2V5cyJdLCJzbG90",
        "cyI6W3sia2luZCI6InBhc3NwaHJhc2UiLCJjcmVhdGVkQXQiOiIyMDI2LTExLTIzVDExOjM3OjEzLjU1NVoiLCJrZGYiOnsibmFt",
        "ZSI6InNjcnlwdCIsImxvZ04iOjE0LCJyIjo4LCJwIjoxLCJzYWx0IjoiY0NST2hRTXEtTTRJcEtaZW1oLXF1ZyJ9LCJ3cmFwcGVk",
        "S2V5IjoiMGNCaVpkUU8tYlkzQ2FTOEpfN1lyRUJTZElOdGYxT2hhUmgyb2FoalpNcyIsImNoZWNrIjoidzRKaE9KWHF3WXkteTBH",
        "ZXRXMU9vX1BsZUVMZEJYaENqUVJGWkIwVXk3dyJ9LHsia2luZCI6ImtleSIsImlkIjoiN2V5YXhyMngiLCJsYWJlbCI6InJlY292",
        "ZXJ5IiwiY3JlYXRlZEF0IjoiMjAyNi0xMS0yM1QxMTozNzoxNC44NDJaIiwic2FsdCI6IkMtdUVDcXRTalJDRlYwbmtyZDFNY0Ei",
        "LCJ3cmFwcGVkS2V5IjoiWUpmY0pKWF92dFpPalBmYXMzOWF4YWp3a013SmxSdTB4d0RaOFpUZ2F5VSIsImNoZWNrIjoiNElTY3o3",
        "ODBzeFFyM29sUlZyUFl6SUIxc3BrZHpvTDMxVmlOUEgxakNyNCJ9XSwibWFjIjoid0luZVljYXlER3lQYUYzWEcwTjRNYjBERUFY",
        "WE5jS213X0lnRnBQR2w3ZyJ9Cg==",
      ].join(""),
      "vault/gen-1/keys/seal.sealed": [
        "U1JWQgIAAADzo3LEJa/7VA1dGzUHM5/JaM5gNrw0tZJbLn/yU8brYBN2H5wj87+iI6Vul2Ggp1Otv5BcNpPvJTjxawBdmkNFQU7s",
        "5UYhpTBr3fI+VXPh19sMiXQ24vr8iGVDTykKrzFVtm5DaoR4C+09OrcRWRqFla1ejCjpUdQkx0ywAfLRHnwqNMMFeTRQxhhva7XN",
        "gmsjDOYqHJRDuH5OOO3Jhr7w5re2tlFedBi4r3j3bHxiqkvYDV8KcbOV3sMXkjm+sVwZQPqQx/mv+BDg7fCNOX/xXVEN1R7L5/9M",
        "tCNaU/aplYRLPr1lDmNWNSWnr+PpFm8qgvOHAAAAbOGU6mDKEqzdnx8O6vV/VtFu8xK8qekyW6uuJNp4GKEEei9j3ijBNGqy2GJO",
        "JBIsOl2mHWcrqsLmzEFw6+WpuLXnzBylXlaDQuPs+NNgdjFsfA3Eh8LI7aLu4Ttshel3DrQpseymMJSYssr5hQ==",
      ].join(""),
      "vault/gen-1/keys/sign.sealed": [
        "U1JWQgIAAAFhc+dYHEVqQIMZbtGagKgQDkYuGCfQM8cEz6brqWSY7ZlT4QdjV/CzVU/xqMRGw2cc7SeIg9Qoiy8c0mY23TfZ2caf",
        "V+UZ5X//iQk44CHUGy5sIjN2Tw1zUGZEoFVWIAyX4FuQDq33LQHk+OQWrZfJR8hqJDUvqaUksXmOt6YaY8trnmNowH80TnWH7qE+",
        "J8m1otpL0HJHGI6OoUrakSP98V8EEzvaPiaLDOxyhiWKf0VkSftnxlrIAODPDGC6b5lSfuKTOQ55f6kS72yuvNDpMVT+dI0esL9e",
        "QiwrmpqvnPT9qb/lhbLw4GGoc27zny8ECWiXu6C4mXYHyvNQ261fAHT39NtSo84ec7XG2k8S3oJTS5JJ/mOdw8REFc88VPlxWSGZ",
        "WbRP6be11yNJL5+7GD5T5OVeq/rMBhOZTWh2NcMbgaMFDJCGx56ohcarm0AgvjZaN0YFt1ztAWju33V5b8gAAABMoR7SvgxlTWSm",
        "tWA/52MLVWkAs5SQpRBWCMv11kFCpvFDEFsKphwIY3ceBSRuVUm8bH/WM1PH2wAngbHk3sO44cLjGzoQkWI0W5q1Dw==",
      ].join(""),
      "vault/gen-1/secrets/%c3%9cmlaut%20%42.sealed": [
        "U1JWQgIAAACRz/4j8Z2fAaP4hy++c0zEZZZQS7qsJP0Hq1FnP5W6Ait1k9tIk5eF6hdGlY1PQuFA50LWxWgQUNcVp6f0uac5DjoR",
        "5VW3TMskFygINd0YqQXHkF0ZTGHHGovZiqxhbFbNUVBrR21COa+e0iAIVwEiQIfCv/ogMY8V9QCkWgEvMgXwKCdcWQIkPwIILCp+",
        "cJn9DgAAADQu5wmRdNPh3cgmpKHhNKizLTVuZ83EyuyIyud8ZUtaBagpXfVwYs9QQgF0M+dd1Km1LlTB",
      ].join(""),
      "vault/gen-1/secrets/app/db/password.sealed": [
        "U1JWQgIAAADC+UTHB3ZZl1h/g0EK1DaUtBG9QXY3tVd50mCumi5/04K6Z6LlbcOVNOPCEnNAJWkRwVBuvJuuPOtVK/KMcqYo17rp",
        "iiEnTiBT/OKS4PVu+/I07L6M1hqpmx6kZo93DA3jBO/qY/cnBamtajWKHCXKKvbISSg6xfn5tCVoIOEFn7GliEWXtzxwMNDYvX1X",
        "5FkCkZR+qfQVwc4HyKv6aKB4uGLxr7KiuAbcoGsFXtXPAADQRVtBtPVBz94zVZ+HZkhX3YIAAAA2m5MsyaHkB9TousqmlEGvfL0q",
        "zqVRXdMDuyujtlxp4PrlfaUZuYnATbABF7obtIvso12cylvMAAAAwjCJYsKktukN1YnRjHR0x2PAYx4EUp06Y7Fwey56RzNCr/Kw",
        "vJcOTPjDrFuQdj7ASpj3AEpF0KK/NEtV1MtytnHLjJkl0HTEZvYpnd+1mcPh4nWKd+h4RkEnnxQuge/0cPXDWdeSti1LDKSrCu1v",
        "yVUkQhjBfT6it6NnSsQvFb6QvqMoTnCPP/VtcRcxEUn7qJYHkPJDrrEGpyJsCAiDELlerMmlBB+JkV9/fSOpXGZKNZ3XUo/Aa1ha",
        "wr1I0xB1dRm/AAAANYI2jbsHDrIV0USxU/z6BjnpXm3SSA1BTKEoZy7P3c+XYGy4fxJV1eyO7PFzhsSPnYK/o3VU",
      ].join(""),
      "vault/gen-1/trash/old/key.sealed": [
        "U1JWVAEAAAGiCDIxfJp4jcaiP1DfU1JWQgIAAACRSRibST19RlizNu0IMBKxpjUTbOm++V5aefpYoEL9RCxRJoY07pQ6IwN5LERW",
        "JWIHS1+HGBPoBq2HKlklmV7vh0X9ac5WWXiu3U6JHVXe3mWN+7xNmrLdPm6fEoHejaY/CMtdxO5ftKA/VtqkpBpjFIdksmxfQ7b9",
        "w8GlGbTUIatAHa+F+a3g9Ey6l0C9oCJV2gAAADfnF4bxqHU2lUSFSRHtMm2MdstRAgkWTJ8IZgfmCfGGWf3P7RkzXniZkMyiTYfH",
        "fkx3cFqhzGKT",
      ].join(""),
    },
  },
];
