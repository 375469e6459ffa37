package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func name(i int) string { return fmt.Sprintf("m%03d.json", i) }

func TestPutReplaceDelete(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, n := range []int{3, 100} { // each synced; one barrier
		for _, workers := range []int{1, 3} {
			for _, exchange := range []bool{true, false} {
				t.Run(fmt.Sprintf("n=%d/workers=%d/exchange=%v", n, workers, exchange), func(t *testing.T) {
					b := newBed(t, func(o *Options) { o.Workers = workers })
					if !exchange {
						b.fs.on = func(op, _ string) error {
							if op == "exchange" {
								return errors.ErrUnsupported
							}
							return nil
						}
					}
					for v := 1; v <= 4; v++ {
						var cs []Change
						for i := range n {
							cs = append(cs, b.change(name(i), v-1, v))
						}
						b.put(cs...)
						for i := range n {
							b.want(name(i), v)
						}
					}
					var cs []Change
					for i := range n {
						to := 0
						if i%2 == 1 {
							to = 5
						}
						cs = append(cs, b.change(name(i), 4, to))
					}
					b.put(cs...)
					for i := range n {
						if i%2 == 1 {
							b.want(name(i), 5)
						} else if _, _, err := b.folder.Read(name(i), 0); !errors.Is(err, fs.ErrNotExist) {
							t.Fatalf("deleted: %v", err)
						}
					}
					b.wantSetAside()
					if err := b.fl.Close(); err != nil {
						t.Fatal(err)
					}
					if left := b.files("tmp"); len(left) != 0 {
						t.Fatalf("left in tmp: %v", left)
					}
				})
			}
		}
	}
}

// A displaced file is the next temp file, neither emptied nor unlinked.
func TestInodesAreUsedAgain(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	ino := func(n string) uint64 {
		info, err := b.folder.Stat(n)
		if err != nil {
			t.Fatal(err)
		}
		return info.Ino
	}
	a1 := ino("a.json")
	b.put(b.change("a.json", 1, 2), b.change("b.json", 1, 2))
	skipWithoutLeases(t, b)
	if got := ino("b.json"); got != a1 {
		t.Fatalf("b.json has inode %d, want the one displaced from a.json, %d", got, a1)
	}
	if n := len(b.files("tmp")); n != 1 {
		t.Fatalf("%d files in the pool, want 1", n)
	}
}

func skipWithoutLeases(t *testing.T, b *bed) {
	t.Helper()
	p := b.path("probe")
	b.write(p, "x")
	f, err := b.fs.OpenFile(p, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Lease(); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no leases here")
	}
}

// The changed permissions of a file are not passed on to the file that reuses its inode.
func TestModeIsNotInherited(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	if err := os.Chmod(b.folder.Path("a.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.put(b.change("a.json", 1, 2), b.change("b.json", 1, 2))
	for _, n := range []string{"a.json", "b.json"} {
		if info, err := b.folder.Stat(n); err != nil || info.Mode.Perm() != 0o600 {
			t.Fatalf("%s: %v %v", n, info.Mode, err)
		}
	}
}
