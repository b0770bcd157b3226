# Homebrew formula. Unverified: `ruby -c` reads it, no Homebrew has built it. A release sets url and sha256 (see CONTRIBUTING.md).
class Strongroom < Formula
  desc "Local secret vault with an isolated key"
  homepage "https://example.invalid/strongroom"
  url "https://example.invalid/strongroom/releases/strongroom-0.1.0.tgz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "node"

  def install
    # The npm package has no dependencies and no install scripts: nothing is downloaded or run.
    libexec.install Dir["*"]
    program = %Q("#{Formula["node"].opt_bin}/node" -- "#{libexec}/dist/program/entry.cjs")
    (bin/"strongroom").write %Q(#!/bin/sh\nexec #{program} "$@"\n)
    %w[git-credential docker-credential age-plugin cargo-credential terraform-credentials].each do |helper|
      (bin/"#{helper}-strongroom").write %Q(#!/bin/sh\nexec #{program} #{helper} "$@"\n)
    end
    man1.install libexec/"dist/share/man/strongroom.1"
    bash_completion.install libexec/"dist/share/completions/strongroom.bash" => "strongroom"
    zsh_completion.install libexec/"dist/share/completions/_strongroom"
    fish_completion.install libexec/"dist/share/completions/strongroom.fish"
  end

  service do
    run [opt_bin/"strongroom", "serve"]
    keep_alive crashed: true
  end

  test do
    assert_equal "#{version}\n", shell_output("#{bin}/strongroom version")
  end
end
