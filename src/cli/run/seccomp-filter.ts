/**
 * Filter of system calls in the sandbox (seccomp(2), classic BPF): what the kernel keeps in no namespace. Some families of
 * sockets lead to the hypervisor or to devices from every network namespace, and keyrings come from the user's session. io_uring
 * could open sockets past the filter. A terminal takes input from a program by TIOCSTI and TIOCLINUX, and a driver by TIOCSETD.
 */

/** Numbers of `denied`: add_key, request_key, keyctl, io_uring_setup, and socketcall, whose arguments are out of sight. */
type Architecture = {
  readonly audit: number;
  readonly socket: number;
  readonly ioctl: number;
  readonly denied: readonly number[];
};

/** See linux/audit.h and asm/unistd.h. A processor of 64 bits also runs programs of 32 bits. */
const architectures: readonly Architecture[] = [
  { audit: 0xc000003e, socket: 41, ioctl: 16, denied: [248, 249, 250, 425] }, // x86-64
  { audit: 0x40000003, socket: 359, ioctl: 54, denied: [286, 287, 288, 425, 102] }, // i386
  { audit: 0xc00000b7, socket: 198, ioctl: 29, denied: [217, 218, 219, 425] }, // arm64
  { audit: 0x40000028, socket: 281, ioctl: 54, denied: [309, 310, 311, 425, 102] }, // arm
];

/** Unix, IPv4, IPv6, netlink: the first has its own rules in the sandbox, the others its network namespace. */
const families = [1, 2, 10, 16];

/** TIOCSTI, TIOCLINUX, TIOCSETD (asm-generic/ioctls.h). The kernel reads 32 bits of them. */
const terminalRequests = [0x5412, 0x541c, 0x5423];

/** Calls of the x32 ABI have this bit, and reach the same functions. */
const x32 = 0x40000000;

const [load, ifEqual, ifAtLeast, end] = [0x20, 0x15, 0x35, 0x06];
const offsets = { number: 0, architecture: 4, firstArgument: 16, secondArgument: 24 };
const allow = 0x7fff0000;
const failsWith = (code: number) => 0x00050000 + code;
const [notPermitted, noSuchFamily] = [1, 97];

/** `skip`: how many instructions are left out where a comparison does not hold. */
type Instruction = { readonly code: number; readonly value: number; readonly skip?: number };

/** Returns the program as the kernel of a little-endian machine reads it. */
export function seccompFilter(): Buffer {
  const cases = architectures.flatMap((each) => {
    const rules = architectureRules(each);
    return [{ code: ifEqual, value: each.audit, skip: rules.length }, ...rules];
  });
  const program = [{ code: load, value: offsets.architecture }, ...cases, { code: end, value: allow }];
  return Buffer.concat(program.map(encoded));
}

function architectureRules({ socket, ioctl, denied }: Architecture): Instruction[] {
  const familyRules = families.flatMap((family) => when(ifEqual, family, allow));
  const socketRules = [
    { code: load, value: offsets.firstArgument },
    ...familyRules,
    { code: end, value: failsWith(noSuchFamily) },
  ];
  const ioctlRules = [
    { code: load, value: offsets.secondArgument },
    ...terminalRequests.flatMap((request) => when(ifEqual, request, failsWith(notPermitted))),
    { code: end, value: allow },
  ];
  return [
    { code: load, value: offsets.number },
    ...when(ifAtLeast, x32, failsWith(notPermitted)),
    ...denied.flatMap((number) => when(ifEqual, number, failsWith(notPermitted))),
    { code: ifEqual, value: ioctl, skip: ioctlRules.length },
    ...ioctlRules,
    { code: ifEqual, value: socket, skip: socketRules.length },
    ...socketRules,
    { code: end, value: allow },
  ];
}

function when(code: number, value: number, result: number): Instruction[] {
  return [
    { code, value, skip: 1 },
    { code: end, value: result },
  ];
}

function encoded({ code, value, skip = 0 }: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(skip, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}
