package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// identity makes an identity, and returns its file and its public key.
func identity(t *testing.T, dir, name string) (file, public string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, name)
	writeFile(t, file, "# created for a test\n"+id.String()+"\n")
	return file, id.Recipient().String()
}

// TestSealed verifies that a sealed backup has nothing of the store in it, that each identity opens it, and that no
// other does.
func TestSealed(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	var lines strings.Builder
	vector := []float32{0.123456, -0.654321, 0.777777}
	for i := range 300 {
		fmt.Fprintf(&lines, `{"id":"secret-id-%d","content":"classified text %d","embedding":[0.123456,-0.654321,0.777777],`+
			`"metadata":{"session_id":"hidden-session","speaker":"Mata Hari"}}`+"\n", i, i)
	}
	writeFile(t, filepath.Join(c.dir, "lines.jsonl"), lines.String())
	c.ok("--store", c.store(), "import", filepath.Join(c.dir, "lines.jsonl"))
	first, one := identity(t, c.dir, "first.txt")
	second, two := identity(t, c.dir, "second.txt")
	stranger, _ := identity(t, c.dir, "stranger.txt")
	sealed := filepath.Join(c.dir, "sealed.age")
	c.ok("--store", c.store(), "backup", "--packed", "--recipient", one, "--recipient", two, sealed)
	b, err := os.ReadFile(sealed)
	if err != nil {
		t.Fatal(err)
	}
	hidden := []string{"secret-id", "classified", "hidden-session", "Mata", "memories/", "backup.json", "varvepk",
		c.store()}
	for _, f := range vector {
		hidden = append(hidden, string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(f))), fmt.Sprint(f))
	}
	for _, s := range hidden {
		if bytes.Contains(b, []byte(s)) {
			t.Errorf("the sealed backup has %q", s)
		}
	}
	for i, file := range []string{first, second} {
		to := filepath.Join(c.dir, fmt.Sprint("restored", i))
		c.ok("restore", sealed, to, "--identity", file)
		if out := c.ok("--store", to, "get", "secret-id-7", "--content"); strings.TrimSpace(out) != "classified text 7" {
			t.Errorf("%q", out)
		}
		if out := c.ok("backup", "--check", sealed, "--identity", file); !strings.Contains(out, "is sound: 300 memories") {
			t.Error(out)
		}
	}
	refused := func(code int, says string, args ...string) {
		t.Helper()
		got, out, errOut := c.run("", args...)
		if got != code || !strings.Contains(errOut, says) || strings.Contains(out+errOut, "AGE-SECRET-KEY-1") {
			t.Errorf("%v: exit code %d, %s%s", args, got, out, errOut)
		}
	}
	none := filepath.Join(c.dir, "none")
	refused(cli.CodeRefused, "is sealed", "restore", sealed, none)
	refused(cli.CodeRefused, "is sealed", "backup", "--check", sealed)
	refused(cli.CodeRefused, "no identity in", "restore", sealed, none, "--identity", stranger)
	refused(cli.CodeRefused, "has no identity of age", "restore", sealed, none, "--identity", sealed)
	// A wrong byte anywhere, and a cut, is found; what is restored is what was backed up.
	for _, at := range []int{3, 200, len(b) / 2, len(b) - 3} {
		d := bytes.Clone(b)
		d[at] ^= 1
		damaged := filepath.Join(c.dir, fmt.Sprint("damaged", at))
		for _, d := range [][]byte{d, b[:at]} {
			if err := os.WriteFile(damaged, d, 0o600); err != nil {
				t.Fatal(err)
			}
			if code, out, errOut := c.run("", "backup", "--check", damaged, "--identity", first); code == cli.CodeOK {
				t.Errorf("damage at %d is not found: %s%s", at, out, errOut)
			}
		}
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a refused restore left a folder")
	}
}

// TestSealedOrRefused verifies that a backup that is to be sealed and cannot be is refused, and never plain text, and
// that no error shows an identity.
func TestSealedOrRefused(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("--store", c.store(), "put", "x")
	file, one := identity(t, c.dir, "first.txt")
	secret, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(strings.TrimSpace(string(secret)), "\n")
	pq, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(c.dir, "b")
	for says, args := range map[string][]string{
		"a second --recipient":       {"--packed", "--recipient", one},
		"add --packed":               {"--recipient", one, "--single-recipient"},
		"is not a public key":        {"--packed", "--recipient", "age1wrong", "--single-recipient"},
		"recipient 1 is an identity": {"--packed", "--recipient", key, "--single-recipient"},
		"recipient 2 is given twice": {"--packed", "--recipient", one, "--recipient", one},
		"incompatible recipients": {
			"--packed", "--recipient", one, "--recipient", pq.Recipient().String(),
		},
		"--single-recipient needs": {"--packed", "--single-recipient"},
		"omit --single-recipient": {
			"--packed", "--recipient", one, "--recipient", "age1x", "--single-recipient",
		},
		"--identity can be used only with --check": {"--packed", "--identity", file},
		"omit --packed and --recipient":            {"--check", "--recipient", one},
	} {
		code, out, errOut := c.run("", append(append([]string{"--store", c.store(), "backup"}, args...), to)...)
		if code != 64 || !strings.Contains(errOut, says) || strings.Contains(out+errOut, key) {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, errOut)
		}
		if _, err := os.Stat(to); err == nil {
			t.Fatalf("%v made a backup", args)
		}
	}
	c.ok("--store", c.store(), "backup", "--packed", "--recipient", one, "--single-recipient", to)
	c.ok("--store", c.store(), "backup", "--packed", "--recipient", pq.Recipient().String(), "--single-recipient", to+"2")
	if code, _, errOut := c.run("", "--store", c.store(), "backup", "--packed", "--recipient", one, "--single-recipient",
		to); code == cli.CodeOK || !strings.Contains(errOut, "exists") {
		t.Error(code, errOut)
	}
}
