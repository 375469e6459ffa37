package server

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

func hexOf(secret string) string {
	s := SumOf(secret)
	return hex.EncodeToString(s[:])
}

// What is written is read back, in a file of the user alone.
func TestTokensFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "tokens.json")
	one := Token{Name: "one", Sum: SumOf("a"), Created: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)}
	two := Token{Name: "two", Sum: SumOf("b"), ReadOnly: true, Tools: []string{"memory"}}
	for _, k := range []Token{two, one} {
		if err := AddToken(t.Context(), path, k); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadTokens(path)
	if err != nil || !reflect.DeepEqual(got, []Token{one, two}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, k := range []Token{{Name: "one", Sum: SumOf("c")}, {Name: "other", Sum: SumOf("a")}} {
		if err := AddToken(t.Context(), path, k); !errors.Is(err, ErrTokenExists) {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
	if err := RemoveToken(t.Context(), path, "none"); !errors.Is(err, ErrNoToken) {
		t.Error(err)
	}
	if err := RemoveToken(t.Context(), path, "one"); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadTokens(path); err != nil || len(got) != 1 || got[0].Name != "two" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A token for no store is refused, and one for no tool, such as that of memctl ui, does not become one for all.
func TestTokensForNone(t *testing.T) {
	t.Parallel()
	k := Token{Name: "a", Sum: SumOf("a"), Stores: []string{}}
	if err := AddToken(t.Context(), filepath.Join(t.TempDir(), "tokens.json"), k); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
	if list, err := parseTokens(formatTokens([]Token{k})); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("%+v, %v", list, err)
	}
	k = Token{Name: "a", Sum: SumOf("a"), Tools: []string{}}
	if list, err := parseTokens(formatTokens([]Token{k})); err != nil || list[0].Tools == nil || len(list[0].Tools) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// Changes at once follow each other: none is lost.
func TestTokensAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.json")
	const n = 40
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			name := fmt.Sprint(i)
			if err := AddToken(t.Context(), path, Token{Name: name, Sum: SumOf(name)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := ReadTokens(path); err != nil || len(got) != n {
		t.Errorf("%d of %d tokens, %v", len(got), n, err)
	}
}

// A file that says something that this program does not know, or could have been written by somebody else, gives no
// access.
func TestTokensRefused(t *testing.T) {
	t.Parallel()
	entry := `{"name":"a","sha256":"` + hexOf("a") + `"}`
	for what, c := range map[string]struct {
		text, says string
		mode       fs.FileMode
	}{
		"empty":   {"", "EOF", 0o600},
		"version": {`{"version":2,"tokens":[]}`, "version 2", 0o600},
		"member": {`{"version":1,"tokens":[{"name":"a","sha256":"` + hexOf("a") + `","expires":"2026"}]}`, "expires",
			0o600},
		"name twice": {`{"version":1,"tokens":[` + entry + `,{"name":"a","sha256":"` + hexOf("b") + `"}]}`, "twice",
			0o600},
		"token twice": {`{"version":1,"tokens":[` + entry + `,{"name":"b","sha256":"` + hexOf("a") + `"}]}`,
			"same sha256 as",
			0o600},
		"no name": {`{"version":1,"tokens":[{"name":"","sha256":"` + hexOf("a") + `"}]}`, "has no name", 0o600},
		"control": {`{"version":1,"tokens":[{"name":"a\nb","sha256":"` + hexOf("a") + `"}]}`, "printable", 0o600},
		"long name": {`{"version":1,"tokens":[{"name":"` + strings.Repeat("x", 65) + `","sha256":"` + hexOf("a") +
			`"}]}`, "64 bytes", 0o600},
		"short sum": {`{"version":1,"tokens":[{"name":"a","sha256":"00"}]}`, "64 hex digits", 0o600},
		"tools": {`{"version":1,"tokens":[{"name":"a","sha256":"` + hexOf("a") + `","tools":["all"]}]}`,
			"no such group", 0o600},
		"no stores": {`{"version":1,"tokens":[{"name":"a","sha256":"` + hexOf("a") + `","stores":[]}]}`,
			"the list is empty", 0o600},
		"rest":           {`{"version":1,"tokens":[]}{}`, "more data", 0o600},
		"huge":           {strings.Repeat(" ", mostFile+1), "limit", 0o600},
		"others write":   {`{"version":1,"tokens":[]}`, "chmod 600", 0o622},
		"group may also": {`{"version":1,"tokens":[]}`, "chmod 600", 0o660},
	} {
		path := filepath.Join(t.TempDir(), "tokens.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		k, err := OpenTokens(path, Token{Name: "fixed", Sum: SumOf("f")})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := k.Find(SumOf("a")); got != nil || err == nil {
			t.Errorf("%s: %v, %v", what, got, err)
		}
		if got, err := k.Find(SumOf("f")); got == nil || err != nil {
			t.Errorf("%s: a fixed token: %v, %v", what, got, err)
		}
	}
	if _, err := OpenTokens("", Token{Name: strings.Repeat("x", MostName+1)}); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
}

// A server finds what was added since it read the file, and not what was removed.
func TestTokensChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.json")
	k, err := OpenTokens(path)
	if err != nil || k.Len() != 0 {
		t.Fatal(err)
	}
	if err := AddToken(t.Context(), path, Token{Name: "a", Sum: SumOf("a")}); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Find(SumOf("a")); got == nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if err := RemoveToken(t.Context(), path, "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Find(SumOf("a")); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if a, b := NewSecret(), NewSecret(); a == b || len(a) < LeastSecret {
		t.Error(a, b)
	}
}
