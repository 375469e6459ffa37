package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestConcurrent: a test counts if a goroutine is started in it, in a function or method that it calls, or nowhere.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	const text = `package p
func TestPlain(t *testing.T) { other() }
func TestStarts(t *testing.T) { go other() }
func TestGroup(t *testing.T) { var wg sync.WaitGroup; wg.Go(other) }
func TestCalls(t *testing.T) { t.Run("x", func(t *testing.T) { new(group).all() }) }
func (*group) all() { other(); start() }
func start() { go other() }
func other() { other() }
func TestMain(m *testing.M) { start() }
`
	for _, d := range []string{"p", "own"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, d, "p_test.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "own", "go.mod"), []byte("module own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	got, err := concurrent(".")
	if want := []string{"p TestCalls", "p TestGroup", "p TestStarts"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}
