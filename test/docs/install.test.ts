/**
 * A release's tarball and .deb in a fresh Debian without Node: a vault is made, used and purged. Linux on x64, root, and
 * STRONGROOM_INSTALL_ROOT: a directory that debootstrap has filled (`debootstrap --variant=minbase bookworm DIRECTORY`).
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { readManifest } from "../../src/manifest.js";
import { later } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";

const { version } = readManifest();
const debian = process.env["STRONGROOM_INSTALL_ROOT"];
const packages = process.env["STRONGROOM_PACKAGES"] ?? "packages/out";

/** `$run`: the command, as the vault's user. Ends with the server's end. */
const useVault = `
printf 'seven words that no one would guess' > /run/passphrase; chmod 644 /run/passphrase
$run serve > /run/log 2>&1 & server=$!
until grep -q 'listens on' /run/log; do kill -0 $server || { cat /run/log; exit 1; }; sleep 0.2; done
$run init --passphrase-file /run/passphrase
printf 'the value' | $run put app/x
test "$($run get app/x)" = 'the value'
$run lock
$run shutdown
wait $server
`;

const fromTarball = `
tar -xf /run/strongroom.tar.xz -C /opt
export STRONGROOM_HOME=/srv/vault STRONGROOM_PORT=0
run=/opt/strongroom-${version}-linux-x64/bin/strongroom
test "$($run version)" = ${version}
${useVault}
du -sh /opt/strongroom-*
`;

/** Upgrades to the same program as a later version, and back: settings and vault stay, and the vault opens. */
const changeVersion = `
echo '# ours' >> /etc/strongroom/strongroom.env
dpkg-deb -R /run/strongroom.deb /run/later
sed -i 's/^Version: .*/Version: ${version}+later/' /run/later/DEBIAN/control
dpkg-deb -Znone --root-owner-group -b /run/later /run/later.deb > /dev/null
for deb in later strongroom; do
  apt-get -q install -y --no-install-recommends --allow-downgrades /run/$deb.deb > /dev/null
  grep -q '^# ours' /etc/strongroom/strongroom.env
  $run serve > /run/log 2>&1 & server=$!
  until grep -q 'listens on' /run/log; do kill -0 $server || { cat /run/log; exit 1; }; sleep 0.2; done
  $run unlock --passphrase-file /run/passphrase
  test "$($run get app/x)" = 'the value'
  $run shutdown
  wait $server
done
rm -r /run/later /run/later.deb
`;

const fromDeb = `
export DEBIAN_FRONTEND=noninteractive
apt-get -q update > /dev/null
apt-get -q install -y --no-install-recommends /run/strongroom.deb xz-utils
test "$(strongroom version)" = ${version}
test "$(stat -c %U:%a /var/lib/strongroom 2> /dev/null || echo none)" = none
install -d -o strongroom -g strongroom -m 0700 /var/lib/strongroom
export STRONGROOM_HOME=/var/lib/strongroom STRONGROOM_PORT=0
run='setpriv --reuid strongroom --regid strongroom --clear-groups strongroom'
${useVault}
du -sh /usr/lib/strongroom
${changeVersion}
apt-get -q purge -y strongroom 2>&1 | tee /run/purge
grep -q 'is kept, because it holds a vault' /run/purge
test -f /var/lib/strongroom/vault/gen-1/header.json
! command -v strongroom
rm -rf /var/lib/strongroom
apt-get -q install -y --no-install-recommends /run/strongroom.deb > /dev/null
apt-get -q purge -y strongroom
test ! -e /var/lib/strongroom
! getent passwd strongroom
`;

describe("releases in a fresh Debian", function () {
  this.timeout(0);
  let root = "";
  before(function () {
    needs(this, debian !== undefined, "STRONGROOM_INSTALL_ROOT");
    root = mkdtempSync(join(tmpdir(), "strongroom-install-"));
    later(() => rmSync(root, { recursive: true, force: true }));
    execFileSync("cp", ["-a", `${debian}/.`, root]);
    cpSync("/etc/resolv.conf", join(root, "etc/resolv.conf"));
    cpSync(join(packages, `strongroom-${version}-linux-x64.tar.xz`), join(root, "run/strongroom.tar.xz"));
    cpSync(join(packages, `strongroom_${version}_amd64.deb`), join(root, "run/strongroom.deb"));
  });

  /** In a PID space of its own, so that nothing outlives it. */
  function runInside(script: string): void {
    const inside = `mount -t proc proc /proc && exec sh -ec "$0"`;
    const args = ["--mount", "--pid", "--fork", "chroot", root, "sh", "-c", inside, script];
    const { status, stdout, stderr } = spawnSync("unshare", args, {
      encoding: "utf8",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LANG: "C" },
    });
    process.stdout.write(
      stdout
        .split("\n")
        .filter((line) => /^[\d.]+M\t/.test(line))
        .join("\n"),
    );
    expect(status, `${stdout}${stderr}`).to.equal(0);
  }

  it("the fresh Debian has no Node of its own", () => runInside("! command -v node"));

  it("installs the .deb, serves a vault, and keeps it at a purge, but nothing else", () => runInside(fromDeb));

  it("runs the tarball's program from any directory", () => runInside(fromTarball));
});
