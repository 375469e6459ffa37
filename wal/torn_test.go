package wal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Tails that were torn at the same position each have a copy in quarantine; a copy that was interrupted is
// written again.
func TestTornTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	at := l.Durable()
	copies := func() (list []string) {
		names, err := filepath.Glob(filepath.Join(l.o.Dir, "quarantine", "*-torn-tail-*.bin"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(b[:4]))
		}
		return list
	}
	put := func(text string) string {
		f, err := l.segment(l.geo.Number(at))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(bytes.Repeat([]byte(text), 4), l.geo.Offset(at)); err != nil {
			t.Fatal(err)
		}
		torn := TornTail{At: at}
		if err := l.putAside(&torn); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(l.o.Dir, torn.Path)
	}
	one := put("one.")
	if again := put("one."); again != one || len(copies()) != 1 {
		t.Errorf("the same tail once more is in %s, %q", again, copies())
	}
	if err := os.Rename(one, one+".part"); err != nil { // a write that was interrupted
		t.Fatal(err)
	}
	if err := os.Truncate(one+".part", 7); err != nil {
		t.Fatal(err)
	}
	if again := put("one."); again != one || len(copies()) != 1 {
		t.Errorf("what was cut is written to %s, %q", again, copies())
	}
	if two := put("two."); two == one || len(copies()) != 2 {
		t.Errorf("another tail is in %s, %q", two, copies())
	}
	if err := os.Remove(one); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(one, 0o700); err != nil { // not a file
		t.Fatal(err)
	}
	if two := put("two."); two == one {
		t.Error("it is in the place of a folder")
	}
}
