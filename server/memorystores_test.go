package server

import (
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/memorystores/conformance"
)

// servingStores serves a folder of stores with the tokens "all" and "reader", whose names are their secrets.
func servingStores(t *testing.T, change func(*memorystores.Options)) (url, dir string) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "tokens.json")
	for _, k := range []Token{{Name: "all"}, {Name: "reader", ReadOnly: true}} {
		k.Sum = SumOf(k.Name)
		if err := AddToken(t.Context(), file, k); err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := OpenTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	o := memorystores.Options{Caller: CallerOf}
	if change != nil {
		change(&o)
	}
	stores, err := memorystores.Open(filepath.Join(dir, "stores"), o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(nil, Options{Tokens: tokens, MemoryStores: stores})
	if err != nil {
		t.Fatal(err)
	}
	url, stop := listening(t, s)
	t.Cleanup(func() {
		stop()
		if err := stores.Close(); err != nil {
			t.Error(err)
		}
	})
	return url, dir
}

// listening serves on a free port until stop is called.
func listening(t *testing.T, s *Server) (url string, stop func()) {
	t.Helper()
	v := &served{t: t, s: s}
	return v.start()
}

func TestMemoryStores(t *testing.T) {
	t.Parallel()
	url, _ := servingStores(t, nil)
	conformance.Run(t, url, "all")
}
