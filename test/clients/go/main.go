// Encrypts and decrypts by the Go CDK, and signs and verifies by sigstore, with keys of a server that speaks Vault's API.
package main

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"os"

	"github.com/hashicorp/vault/api"
	"github.com/sigstore/sigstore/pkg/signature/kms/hashivault"
	cdk "gocloud.dev/secrets/hashivault"
)

func goCdk(ctx context.Context, key string) error {
	client, err := cdk.Dial(ctx, &cdk.Config{Token: os.Getenv("VAULT_TOKEN"), APIConfig: *api.DefaultConfig()})
	if err != nil {
		return err
	}
	keeper := cdk.OpenKeeper(client, key, nil)
	defer keeper.Close()
	message := []byte("attack at dawn\x00\xff")
	sealed, err := keeper.Encrypt(ctx, message)
	if err != nil {
		return err
	}
	opened, err := keeper.Decrypt(ctx, sealed)
	if err != nil {
		return err
	}
	if !bytes.Equal(opened, message) {
		return fmt.Errorf("decrypted to something else")
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := keeper.Decrypt(ctx, sealed); err == nil {
		return fmt.Errorf("decrypted what was damaged")
	}
	return nil
}

func sigstore(ctx context.Context, key string) error {
	signer, err := hashivault.LoadSignerVerifier("hashivault://"+key, crypto.SHA256)
	if err != nil {
		return err
	}
	message := []byte("an image's digest")
	signature, err := signer.SignMessage(bytes.NewReader(message))
	if err != nil {
		return err
	}
	if err := signer.VerifySignature(bytes.NewReader(signature), bytes.NewReader(message)); err != nil {
		return err
	}
	if err := signer.VerifySignature(bytes.NewReader(signature), bytes.NewReader([]byte("another"))); err == nil {
		return fmt.Errorf("verified another message")
	}
	_, err = signer.PublicKey()
	return err
}

func main() {
	ctx := context.Background()
	run := map[string]func(context.Context, string) error{"gocdk": goCdk, "sigstore": sigstore}[os.Args[1]]
	if err := run(ctx, os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
