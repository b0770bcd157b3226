#!/usr/bin/env python3
"""Searches a memory dump of a Strongroom server for keys that open its vault.

    prove.py --header FILE --dump FILE [--passphrase-file FILE] [--private-key TYPE=FILE] [--state locked|unlocked] [--json]

This is `strongroom prove --dump` once more, in one file that needs Python 3.9 and its standard library only, written
from docs/on-disk.md. It shares no code with Strongroom; both must agree on every dump.

1. The attacker's scan knows no secret. Every 32 bytes of the dump that start at a multiple of 8 and have at least 22
   distinct values are tried as the master key on the header's MAC, and as a KEK on the check of each slot. So is every
   expanded AES-256 key, which is found by the relation between its words. While the vault is unlocked, exactly one place
   must open it (otherwise the method has failed); while it is locked, none.
2. With the passphrase, the header is opened, and the dump is searched for the master key, the KEK and the passphrase: as
   raw bytes, hex, base64, base64url, all of them also in UTF-16, and in pieces. So it is for transit keys of which the
   private part is given, which are also searched for as DER, PEM, and numbers in either byte order.

A dump shows nothing by what is not in it unless it is the whole memory of a server of this vault: such a server holds the
vault's id in every state, and a core dump must have the bytes of all writable memory.

Output: the number of places that open the vault, and the number of copies of each known secret.
Exit code: 0 nothing contradicts the promises, 12 a promise fails, 13 the files cannot be judged, or are not such a dump.
"""
import argparse
import base64
import collections
import hashlib
import hmac
import json
import pathlib
import re
import struct
import sys


class Unreadable(Exception):
    """A file that does not have the documented format."""


# --- The header (docs/on-disk.md) -------------------------------------------------------------------------------------

# A way into the vault: `checked` are the bytes that the check covers.
Slot = collections.namedtuple("Slot", "kind salt wrapped_key check checked log_n")


class Header:
    """`signed` are the bytes that the MAC covers."""

    def __init__(self, file):
        try:
            text = file.decode("utf-8")
            members = json.loads(text)
            self.version = members["version"]
            if members["format"] != "strongroom" or self.version not in (1, 2):
                raise Unreadable("the header is not of format version 1 or 2")
            self.vault_id = binary(members["vaultId"], 16)
            self.mac = binary(members["mac"], 32)
            self.signed = text[: text.rindex(',"mac":')].encode()
            self.old_key = binary(members["oldKey"], 32) if "oldKey" in members else None
            self.slots = self.read_slots(text, members)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise Unreadable("the header does not have the documented form") from error

    def read_slots(self, text, members):
        if self.version == 1:
            return [self.read_slot(dict(members, kind="passphrase", check=members["mac"]), self.signed)]
        # No label can contain these marks: JSON writes a quotation mark inside a string as \".
        texts = re.split(r'(?=\{"kind":")', text)[1:]
        if not 1 <= len(members["slots"]) <= 16 or len(texts) != len(members["slots"]):
            raise Unreadable("the header has no slots, or too many")
        checked = [each.split(',"check":"')[0].encode() for each in texts]
        return [self.read_slot(slot, checked[i]) for i, slot in enumerate(members["slots"])]

    def read_slot(self, slot, checked):
        kdf, kind = slot.get("kdf"), slot["kind"]
        if kind == "passphrase" and not (1 <= kdf["logN"] <= 20 and (kdf["r"], kdf["p"]) == (8, 1)):
            raise Unreadable("the parameters of scrypt are out of bounds")
        salt, log_n = (kdf["salt"], kdf["logN"]) if kind == "passphrase" else (slot["salt"], 0)
        return Slot(kind, binary(salt, 16), binary(slot["wrappedKey"], 32), binary(slot["check"], 32), checked, log_n)

    def slot_use(self):
        """The text whose HMAC under a KEK is the key of the slot's check."""
        return b"strongroom v1 header key" if self.version == 1 else b"strongroom v2 slot check"

    def covered(self, slot):
        return slot.checked if self.version == 1 else self.vault_id + slot.checked


def binary(text, length):
    value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(value) != length:
        raise Unreadable("a member of the header has a wrong length")
    return value


def mac(key, message):
    return hmac.digest(key, message, "sha256")


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def open_header(header, passphrase):
    """Returns the known secrets by name, or raises Unreadable when the passphrase opens no slot."""
    key = key_of_text(passphrase)
    for slot in header.slots:
        if slot.kind == "key":
            if key is None:
                continue
            kek = mac(key, b"strongroom v2 key slot" + slot.salt)
        else:
            kek = hashlib.scrypt(passphrase, salt=slot.salt, n=2**slot.log_n, r=8, p=1, maxmem=2**31 - 1, dklen=32)
        if mac(mac(kek, header.slot_use()), header.covered(slot)) != slot.check:
            continue
        pad = mac(kek, b"strongroom v%d key wrap" % header.version + header.vault_id)
        master_key = xor(slot.wrapped_key, pad)
        known = {"master key": master_key}
        if header.old_key is not None:
            known["master key before the rotation"] = xor(header.old_key, derive([master_key], b"old key wrap")[0])
        name = "recovery key" if slot.kind == "key" else "passphrase"
        known["KEK of the " + name] = kek
        known[name] = passphrase
        return known
    raise Unreadable("the passphrase does not open the header")


def key_of_text(text):
    """SRK- and 13 groups: four letters of Crockford's base32, and one that checks them, which is skipped here."""
    letters = text.decode("latin-1").upper().replace("-", "").replace("I", "1").replace("L", "1").replace("O", "0")
    if not re.fullmatch("SRK[0-9A-HJKMNP-TV-Z]{65}", letters.replace("SRK", "SRK", 1)):
        return None
    bits = 0
    for i, letter in enumerate(letters[3:]):
        if i % 5 != 4:
            bits = bits << 5 | "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
    return (bits >> 4).to_bytes(32, "big")  # 52 letters are 260 bits


# --- AES-256 of many keys at once (FIPS 197) --------------------------------------------------------------------------
# A block of N keys is 16 numbers: number i has byte i of each of the N blocks. Exclusive or is one operation on numbers,
# and a table is one bytes.translate.


def make_sbox():
    powers, box = [1], bytearray(b"\x63" * 256)
    while len(powers) < 255:
        powers.append(powers[-1] ^ powers[-1] << 1 & 255 ^ (0x1B if powers[-1] & 128 else 0))  # of 3, a generator of the field
    for i, power in enumerate(powers):
        q = powers[-i % 255]  # the inverse
        rotated = q ^ q << 1 ^ q << 2 ^ q << 3 ^ q << 4
        box[power] = (rotated ^ rotated >> 8 ^ 0x63) & 255
    return bytes(box)


SBOX = make_sbox()
DOUBLED = bytes(x << 1 & 255 ^ (0x1B if x & 128 else 0) for x in range(256))
ROUND_CONSTANTS = (1, 2, 4, 8, 16, 32, 64)


class Columns:
    """Arithmetic on numbers that hold one byte of each of `count` blocks."""

    def __init__(self, count):
        self.count = count
        self.ones = int.from_bytes(b"\1" * count, "little")

    def of(self, column):
        return int.from_bytes(column, "little")

    def through(self, table, number):
        return int.from_bytes(number.to_bytes(self.count, "little").translate(table), "little")

    def constant(self, byte):
        return self.ones * byte

    def expand(self, key):
        """Returns the 240 numbers of the round keys; `key` has 32 numbers."""
        words = [key[i : i + 4] for i in range(0, 32, 4)]
        for i in range(8, 60):
            word = words[i - 1]
            if i % 8 == 0:
                word = [self.through(SBOX, x) for x in word[1:] + word[:1]]
                word[0] ^= self.constant(ROUND_CONSTANTS[i // 8 - 1])
            elif i % 8 == 4:
                word = [self.through(SBOX, x) for x in word]
            words.append([a ^ b for a, b in zip(words[i - 8], word)])
        return [number for word in words for number in word]

    def encrypt(self, keys, block):
        state = [a ^ b for a, b in zip(block, keys)]
        for at in range(16, 240, 16):
            state = [self.through(SBOX, state[i * 5 % 16]) for i in range(16)]  # SubBytes and ShiftRows
            if at < 224:
                state = self.mix(state)
            state = [a ^ b for a, b in zip(state, keys[at : at + 16])]
        return state

    def mix(self, state):
        mixed = []
        for at in range(0, 16, 4):
            a = state[at : at + 4]
            total = a[0] ^ a[1] ^ a[2] ^ a[3]
            mixed += [a[i] ^ total ^ self.through(DOUBLED, a[i] ^ a[(i + 1) % 4]) for i in range(4)]
        return mixed

    def double(self, block):
        """Times x in GF(2^128), as in CMAC (NIST SP 800-38B)."""
        top = bytes(x >> 7 for x in range(256))
        shifted = bytes(x << 1 & 255 for x in range(256))
        carry = bytes(0x87 * (x >> 7) for x in range(256))
        following = [self.through(top, x) for x in block[1:]] + [self.through(carry, block[0])]
        return [self.through(shifted, x) ^ y for x, y in zip(block, following)]


def derive(keys, use):
    """K(use) of docs/on-disk.md for each key: CMAC in counter mode with the label K, as in XAES-256-GCM."""
    columns = Columns(len(keys))
    joined = b"".join(keys)
    schedule = columns.expand([columns.of(joined[i::32]) for i in range(32)])
    mask = columns.double(columns.encrypt(schedule, [0] * 16))
    derived = bytearray(len(joined))
    for counter in (1, 2):
        content = bytes([0, counter, 0x4B, 0]) + use
        block = columns.encrypt(schedule, [m ^ columns.constant(c) for m, c in zip(mask, content)])
        for i, number in enumerate(block):
            derived[16 * (counter - 1) + i :: 32] = number.to_bytes(len(keys), "little")
    return [bytes(derived[at : at + 32]) for at in range(0, len(derived), 32)]


# --- The dump ---------------------------------------------------------------------------------------------------------

def read_dump(file):
    """Returns (address, bytes) of each segment of a core dump (ELF, 64 bits, little endian), or of raw bytes, and how many
    bytes of memory the dump lacks."""
    if file[:6] != b"\x7fELF\2\1" or len(file) < 64 or struct.unpack_from("<H", file, 16)[0] != 4:
        return [(0, file)], 0
    headers_at, = struct.unpack_from("<Q", file, 32)
    size, count = struct.unpack_from("<HH", file, 54)
    if count and (size < 56 or headers_at + count * size > len(file)):
        raise Unreadable("the core dump is cut off")
    segments, missing = [], 0
    for i in range(count):
        kind, flags, offset, address, _, length, in_memory = struct.unpack_from("<IIQQQQQ", file, headers_at + i * size)
        if kind != 1:
            continue
        present = file[offset : offset + length]
        if present:
            segments.append((address, present))
        missing += (max(length, in_memory) if flags & 2 else length) - len(present)  # what is not writable is in files
    return segments, missing


def problem_of(header, segments, missing):
    """Returns why nothing follows from what is not in a dump, or None."""
    forms = (header.vault_id, base64.urlsafe_b64encode(header.vault_id).rstrip(b"="))
    if not any(form in memory for _, memory in segments for form in forms):
        return "this is not the memory of a server of this vault: the vault's id is not in it"
    return f"{missing} bytes of its memory are missing" if missing else None


# --- The attacker's scan ----------------------------------------------------------------------------------------------

def candidates(memory):
    """Yields the offsets of all 32 bytes that could be a key."""
    zeros = bytes(4096)
    for page in range(0, len(memory), 4096):
        if memory[page : page + 4128].count(0) > 4100 and memory[page : page + 4096] == zeros:
            continue  # a window that begins here has at most 32 other bytes, but too few of them
        for at in range(page, min(page + 4096, len(memory) - 31), 8):
            if len(set(memory[at : at + 32])) >= 22:
                yield at


def schedules(memory):
    """Yields offset and key of each expanded AES-256 key, whose words are in the order of bytes or of the machine."""
    step = 1 << 20
    for begin in range(0, len(memory) - 239, step):
        part = memory[begin : begin + step + 240]
        part = part[: len(part) // 4 * 4]
        planes = [part[i::4] for i in range(4)]
        for swapped in (False, True):
            for at in first_relation(planes[::-1] if swapped else planes):
                expanded = part[4 * at : 4 * at + 240]
                if swapped:
                    expanded = b"".join(expanded[i : i + 4][::-1] for i in range(0, len(expanded), 4))
                if at * 4 < step and expanded == expand_one(expanded[:32]):
                    yield begin + 4 * at, expanded[:32]


def first_relation(planes):
    """Yields where word 8 is word 0 xor the rotated and substituted word 7 xor 1, for all words at once."""
    length = len(planes[0]) - 8
    if length <= 0:
        return
    differs = 0
    for i in range(4):
        rotated = planes[(i + 1) % 4][7:-1].translate(SBOX)
        difference = (int.from_bytes(planes[i][8:], "little") ^ int.from_bytes(planes[i][:-8], "little")
                      ^ int.from_bytes(rotated, "little"))
        differs |= difference ^ (int.from_bytes(b"\1" * length, "little") if i == 0 else 0)
    found = differs.to_bytes(length, "little")
    at = found.find(0)
    while at >= 0:
        yield at
        at = found.find(0, at + 1)


def expand_one(key):
    columns = Columns(1)
    return bytes(columns.expand(list(key))) if len(key) == 32 else b""


def attack(header, segments):
    """Returns the addresses of all places that open the vault."""
    places, batch = set(), []

    def try_batch():
        derived = derive([key for _, key in batch], b"header check") if header.version == 2 else []
        for i, (address, key) in enumerate(batch):
            if derived and mac(derived[i], header.signed) == header.mac:
                places.add(address)
            slot_key = mac(key, header.slot_use())
            if any(mac(slot_key, header.covered(slot)) == slot.check for slot in header.slots):
                places.add(address)
        batch.clear()

    for address, memory in segments:
        for at, key in schedules(memory):
            batch.append((address + at, key))
        for at in candidates(memory):
            batch.append((address + at, memory[at : at + 32]))
            if len(batch) >= 8192:
                try_batch()
    if batch:
        try_batch()
    return sorted(places)


# --- Known secrets ----------------------------------------------------------------------------------------------------

def forms_of(secret, is_text):
    """Returns the bytes that a program might write a secret as; the last character of base64 depends on what follows."""
    texts = [secret.decode("latin-1"), secret.hex(), secret.hex().upper(),
             re.sub(".?=*$", "", base64.b64encode(secret).decode()),
             base64.urlsafe_b64encode(secret).decode().rstrip("=")[: -1]]
    forms = {text.encode(encoding) for text in texts for encoding in ("latin-1", "utf-16-le")}
    return forms | ({secret.decode("utf-8", "replace").encode("utf-16-le")} if is_text else set())


def occurrences(memory, pattern):
    at = memory.find(pattern)
    while at >= 0:
        yield at
        at = memory.find(pattern, at + 1)


def count_known(segments, secret, is_text, piece, step=1):
    """Counts whole copies in any form, and runs of the secret's bytes outside its raw copies; also those of text alone.

    Runs count from 8 bytes on; of a passphrase from 12, since 8 may be a word that stands in a program."""
    if len(secret) < 8:
        return 0, 0  # cannot be told from other memory
    copies, raws, runs = 0, 0, set()
    for address, memory in segments:
        raw = {address + at for at in occurrences(memory, secret)}
        raws += len(raw)
        copies += sum(1 for form in forms_of(secret, is_text) for _ in occurrences(memory, form))
        for offset in range(0, len(secret) - piece + 1 if piece else 0, step):
            starts = {address + at - offset for at in occurrences(memory, secret[offset : offset + piece])}
            runs |= starts - raw
    return copies + len(runs), copies - raws


# --- Private transit keys ---------------------------------------------------------------------------------------------

PREFIXES = {"ed25519": bytes.fromhex("302e020100300506032b657004220420"),
            "x25519": bytes.fromhex("302e020100300506032b656e04220420"),
            "ecdsa-p256": bytes.fromhex("3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420")}


def items(der):
    while der:
        long = der[1] & 127 if der[1] & 128 else 0
        start = 2 + long
        end = start + (int.from_bytes(der[2:start], "big") if long else der[1])
        yield der[start:end]
        der = der[end:]


def forms_of_key(kind, part):
    """Returns the numbers of a private key, of some also backwards, and its whole forms: the DER and lines of the PEM."""
    if kind in ("hmac", "aes256-gcm96"):
        return [part[:32], part[32:]] if kind == "aes256-gcm96" else [part], []
    der, numbers, private = part, [part[-32:]], 32
    inner = [] if kind.endswith("25519") or len(part) == 32 else list(items(next(items(list(items(next(items(der))))[2]))))
    if kind.startswith("rsa"):
        numbers, private = [number.lstrip(b"\0") for number in inner[3:6]], 256
    else:
        numbers = [inner[1]] if inner else numbers
        der = PREFIXES[kind] + numbers[0]  # as it is sealed, without a public key
    text = re.sub(".?=*$", "", base64.b64encode(der).decode())
    lines = [text[at : at + 64] for at in range(0, len(text), 64)
             if min(at + 64, len(text)) - max(at, (len(der) - private) * 4 / 3) >= 12]
    backwards = [number[::-1] for number in numbers if not kind.endswith("25519")]
    return numbers + backwards, [der, *(line.encode() for line in lines)]


# --- The command ------------------------------------------------------------------------------------------------------

def judge(arguments):
    header = Header(pathlib.Path(arguments.header).read_bytes())
    segments, missing = read_dump(pathlib.Path(arguments.dump).read_bytes())
    secrets = {}
    if arguments.passphrase_file:
        secrets = open_header(header, re.sub(rb"\r?\n\Z", b"", pathlib.Path(arguments.passphrase_file).read_bytes()))
    known = {}
    for name, secret in secrets.items():
        is_text = name in ("passphrase", "recovery key")
        known[name], _ = count_known(segments, secret, is_text, 12 if is_text else 8)
    encoded = 0
    for kind, file in (given.split("=", 1) for given in arguments.private_key):
        (numbers, whole), name = forms_of_key(kind, pathlib.Path(file).read_bytes()), f"private {kind} keys"
        found = [count_known(segments, number, False, 8, 8 if kind.startswith("rsa") else 1) for number in numbers]
        encodings = sum(count_known(segments, form, False, 0)[0] for form in whole)
        known[name] = known.get(name, 0) + sum(count for count, _ in found) + encodings
        encoded += sum(copies for _, copies in found) + encodings
    return {"attacker": len(attack(header, segments)), "known": known}, encoded, problem_of(header, segments, missing)


def holds(result, encoded, state, is_whole=True):
    """A master key is there exactly once while unlocked, and OpenSSL then holds the numbers of asymmetric keys that were
    used; nothing else ever is. A dump may be of either state, and one that is not whole may lack anything."""
    allowed = {"locked": (0,), "unlocked": (1,) if is_whole else (0, 1), None: (0, 1)}[state]
    known = dict(result["known"])
    masters = [known.pop(name) for name in list(known) if name.startswith("master key")]
    if state != "locked":
        known = {name: count for name, count in known.items() if not re.match("private (ed|x2|ecdsa|rsa)", name)}
    return all(count in allowed for count in [result["attacker"], *masters]) and not any([encoded, *known.values()])


def main():
    parser = argparse.ArgumentParser(description="Searches a memory dump for keys that open a Strongroom vault.")
    parser.add_argument("--header", required=True, help="the vault's header.json")
    parser.add_argument("--dump", required=True, help="a core dump as gcore writes it, or raw bytes")
    parser.add_argument("--passphrase-file", help="also search for what this passphrase opens")
    parser.add_argument("--private-key", action="append", default=[], metavar="TYPE=FILE",
                        help="also search for a transit key: its bytes, or PKCS #8 in DER; may be repeated")
    parser.add_argument("--state", choices=["locked", "unlocked"], help="the vault's state when the dump was made")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        result, encoded, problem = judge(arguments)
    except (Unreadable, OSError) as error:
        print(f"prove.py: {error}", file=sys.stderr)
        return 13
    if arguments.json:
        print(json.dumps(result))
    else:
        print(f"places that open the vault: {result['attacker']}")
        for name, count in result["known"].items():
            print(f"copies of the {name}: {count}")
    if not holds(result, encoded, arguments.state, problem is None):
        return 12
    if problem is not None:
        print(f"prove.py: {problem}", file=sys.stderr)
    return 0 if problem is None else 13


if __name__ == "__main__":
    sys.exit(main())
