# Nix flake. Unverified: nix reads it, no Nix has built it. A release sets url and hash (see CONTRIBUTING.md).
{
  description = "Local secret vault with an isolated key";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forEach = nixpkgs.lib.genAttrs systems;
    in
    {
      packages = forEach (
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        {
          default = pkgs.stdenvNoCC.mkDerivation rec {
            pname = "strongroom";
            version = "0.1.0";
            # The npm package, which has no dependencies and no install scripts.
            src = pkgs.fetchurl {
              url = "https://example.invalid/strongroom/releases/strongroom-${version}.tgz";
              hash = pkgs.lib.fakeHash;
            };
            nativeBuildInputs = [
              pkgs.makeWrapper
              pkgs.installShellFiles
            ];
            dontBuild = true;
            installPhase = ''
              runHook preInstall
              mkdir -p $out/lib/strongroom
              cp -r . $out/lib/strongroom
              makeWrapper ${pkgs.nodejs}/bin/node $out/bin/strongroom \
                --add-flags "-- $out/lib/strongroom/dist/program/entry.cjs"
              for helper in git-credential docker-credential age-plugin cargo-credential terraform-credentials; do
                makeWrapper ${pkgs.nodejs}/bin/node $out/bin/$helper-strongroom \
                  --add-flags "-- $out/lib/strongroom/dist/program/entry.cjs $helper"
              done
              installManPage dist/share/man/strongroom.1
              installShellCompletion --bash --name strongroom dist/share/completions/strongroom.bash
              installShellCompletion --zsh dist/share/completions/_strongroom
              installShellCompletion --fish dist/share/completions/strongroom.fish
              runHook postInstall
            '';
            doInstallCheck = true;
            installCheckPhase = ''
              test "$($out/bin/strongroom version)" = ${version}
            '';
            meta = {
              description = "Local secret vault with an isolated key";
              license = pkgs.lib.licenses.mit;
              mainProgram = "strongroom";
            };
          };
        }
      );
    };
}
