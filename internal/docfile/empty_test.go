package docfile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// What processes that died have left: the pool is removed, edits go to quarantine, files that are open
// stay.
func TestEmptyTemp(t *testing.T) {
	b := newBed(t, nil)
	skipWithoutLeases(t, b)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1), b.change("c.json", 0, 1))
	e, err := os.Open(b.folder.Path("c.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b.put(b.change("c.json", 1, 2), b.change("a.json", 1, 2), b.change("b.json", 1, 0))
	if n := len(b.files("tmp")); n != 3 {
		t.Fatalf("%d files in tmp, want 2 in the pool and 1 parked", n)
	}
	b.write(b.path("tmp", "tok", "0", "77"), "an edit, displaced a moment before the kill")
	old := b.path("tmp", "tok", "0", "78")
	b.write(old, doc("a.json", 2)) // written, not yet put in place
	if err := os.Chtimes(old, b.mtime(2), b.mtime(2)); err != nil {
		t.Fatal(err)
	}
	b.write(b.path("tmp", "tok", "0", "79"), "")

	other := b.flusher("other", nil)
	edits, err := other.EmptyTemp(b.surplus)
	if err != nil || len(edits) != 1 {
		t.Fatalf("%+v %v", edits, err)
	}
	b.wantSetAside("an edit, displaced a moment before the kill")
	left := b.files("tmp")
	if len(left) != 1 {
		t.Fatalf("left: %v", left)
	}
	for p := range left {
		if !strings.HasPrefix(p, "parked/memories@c.json@") {
			t.Fatal(p)
		}
	}
	// The engine whose pool is gone continues to work.
	b.put(b.change("a.json", 2, 3), b.change("d.json", 0, 1))
	b.want("a.json", 3)
	e.Close()
	if edits, err := other.EmptyTemp(nil); err != nil || len(edits) != 0 {
		t.Fatalf("%+v %v", edits, err)
	}
	if left := b.files("tmp"); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
}

func TestWipe(t *testing.T) {
	b := newBed(t, nil)
	skipWithoutLeases(t, b)
	b.put(b.change("a.json", 0, 1))
	b.put(b.change("a.json", 1, 0))
	pool := b.files("tmp")
	if len(pool) != 1 {
		t.Fatal(pool)
	}
	// A second name, to see the content of the file once it has lost its first name.
	held := b.path("second name")
	for p := range pool {
		b.fs.on = func(op, name string) error {
			if op == "datasync" {
				return os.Link(b.path("tmp", p+DoomedSuffix), held)
			}
			return nil
		}
	}
	if err := b.fl.Wipe(); err != nil {
		t.Fatal(err)
	}
	b.fs.on = nil
	data, err := os.ReadFile(held)
	wiped := string(data)
	if err != nil || strings.Trim(wiped, "\x00") != "" || len(wiped) != len(doc("a.json", 1)) {
		t.Fatalf("%q %v", wiped, err)
	}
	if left := b.files("tmp"); len(left) != 0 {
		t.Fatal(left)
	}
}

// Close has no flush.lock: another process may empty tmp/ after Close has opened a file of its pool and
// before it has the lease. The other process then parks the file and removes the folder.
func TestEmptiedAmidClose(t *testing.T) {
	for _, last := range []bool{false, true} {
		for _, stays := range []bool{false, true} {
			t.Run(fmt.Sprintf("last %v, folder stays %v", last, stays), func(t *testing.T) {
				b := newBed(t, nil)
				skipWithoutLeases(t, b)
				b.put(b.change("a.json", 0, 1))
				if last {
					b.fl.Last(true)
				}
				b.put(b.change("a.json", 1, 2))
				if pool := b.files("tmp"); len(pool) != 1 {
					t.Fatal(pool)
				}
				if stays {
					if err := os.Mkdir(b.path("tmp", "tok", "0", "somebody's"), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				other, emptied := b.flusher("other", nil), false
				b.fs.on = func(op, name string) error {
					if op != "lease" || emptied {
						return nil
					}
					emptied = true
					if edits, err := other.EmptyTemp(b.surplus); err != nil || len(edits) != 0 {
						t.Errorf("emptying: %+v %v", edits, err)
					}
					return nil
				}
				err := b.fl.Close()
				b.fs.on = nil
				if err != nil || !emptied {
					t.Errorf("close: %v, emptied amid it: %v", err, emptied)
				}
				// The parked files are no edits, and are removed.
				if edits, err := other.EmptyTemp(b.surplus); err != nil || len(edits) != 0 {
					t.Errorf("emptying again: %+v %v", edits, err)
				}
				b.wantSetAside()
				if left := b.files("tmp"); len(left) != 0 {
					t.Error(left)
				}
				b.want("a.json", 2)
			})
		}
	}
}

func TestParkedName(t *testing.T) {
	b := believed{"memories", "a~b.json", 17, time.Unix(5, 6000)}
	got, since, ok := parseParked(b.parkedName(time.Unix(9, 0), "tok-en", 3))
	if !ok || got.folder != b.folder || got.name != b.name || got.size != 17 || !got.mtime.Equal(b.mtime) || since.Unix() != 9 {
		t.Fatal(got, since, ok)
	}
	if _, _, ok := parseParked("x@y"); ok {
		t.Fatal("accepted")
	}
}

// Files that the last round displaces get the suffix of doomed files at once; many are overwritten behind
// one barrier, and keep their names when it fails.
func TestWipeMany(t *testing.T) {
	for _, n := range []int{3, wipeDirect + 1} {
		b := newBed(t, nil)
		skipWithoutLeases(t, b)
		var made, gone []Change
		for i := range n {
			made, gone = append(made, b.change(name(i), 0, 1)), append(gone, b.change(name(i), 1, 0))
		}
		b.put(made...)
		b.fl.Last(true)
		b.put(gone...)
		pool := b.files("tmp")
		for p := range pool {
			if !isDoomed(p) {
				t.Error(p)
			}
		}
		if len(pool) != n {
			t.Fatal(pool)
		}
		bad, syncs := errors.New("injected"), 0
		b.fs.on = func(op, name string) error {
			if op == "barrier" {
				return bad
			}
			if op == "datasync" {
				syncs++
			}
			return nil
		}
		err := b.fl.Wipe()
		b.fs.on = nil
		left := b.files("tmp")
		if n <= wipeDirect {
			if err != nil || syncs != n || len(left) != 0 {
				t.Error(err, syncs, left)
			}
			continue
		}
		if !errors.Is(err, bad) || syncs != 0 || len(left) != n {
			t.Error(err, syncs, left)
		}
		if _, err := b.fl.EmptyTemp(nil); err != nil {
			t.Error(err)
		}
		if left := b.files("tmp"); len(left) != 0 {
			t.Error(left)
		}
	}
}

// Close takes the leases of its pool in the same order as another process that empties tmp/; otherwise each
// would wait for a file that the other has.
func TestPoolInOrder(t *testing.T) {
	b := newBed(t, nil)
	skipWithoutLeases(t, b)
	var puts, rms []Change
	for i := range 6 { // so that 9 and 10 are among the names
		name := fmt.Sprintf("%c.json", 'a'+i)
		puts, rms = append(puts, b.change(name, 0, 1)), append(rms, b.change(name, 1, 0))
	}
	b.put(puts...)
	b.put(rms...)
	var leased []string
	b.fs.on = func(op, name string) error {
		if op == "lease" {
			leased = append(leased, name)
		}
		return nil
	}
	if err := b.fl.Close(); err != nil {
		t.Fatal(err)
	}
	if len(leased) < 6 || !slices.IsSorted(leased) {
		t.Fatalf("the leases, as they were taken: %q", leased)
	}
}
