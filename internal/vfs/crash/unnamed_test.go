package crash

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// Of an unnamed file nothing is durable before its link and a sync of the folder, and its content only after a sync of
// the file. A killed process leaves nothing of it.
func TestUnnamed(t *testing.T) {
	const text = "content"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// after returns what a boot finds at /dir/a after a crash: "" for a missing file.
	after := func(d *Disk, p Pattern, seed uint64) (content string, exists bool) {
		t.Helper()
		next := d.Crash(p, rand.New(rand.NewPCG(seed, 3))).Process("after")
		names, err := next.ReadDir("/dir")
		must(err)
		if len(names) == 0 {
			return "", false
		}
		if len(names) > 1 || names[0] != "a" {
			t.Fatalf("names: %q", names)
		}
		f, err := next.OpenFile("/dir/a", 0, 0)
		must(err)
		info, err := f.Stat()
		must(err)
		b := make([]byte, info.Size)
		_, err = f.ReadAt(b, 0)
		must(err)
		return string(b), true
	}
	for _, sync := range []bool{false, true} {
		for _, barrier := range []bool{false, true} {
			d := New()
			p := d.Process("p")
			must(p.Mkdir("/dir", 0o700))
			must(p.SyncDir("/"))
			used := d.Used()
			dir, err := p.OpenDir("/dir")
			must(err)
			f, err := dir.CreateUnnamed(0o600)
			must(err)
			_, err = f.WriteAt([]byte(text), 0)
			must(err)
			if sync {
				must(f.Sync())
			}
			if info, err := f.Stat(); err != nil || info.Nlink != 0 {
				t.Fatal(info, err)
			}
			all := func(check func(content string, exists bool)) {
				for _, pattern := range Patterns() {
					for seed := range uint64(8) {
						check(after(d, pattern, seed))
					}
				}
			}
			all(func(_ string, exists bool) {
				if exists {
					t.Error("a file without a name survives a crash")
				}
			})
			must(dir.LinkUnnamed(f, "a"))
			with, without, torn := 0, 0, 0
			all(func(content string, exists bool) {
				switch {
				case !exists:
					without++
				case content == text:
					with++
				default:
					torn++
				}
			})
			if with == 0 || without == 0 || (torn > 0) == sync {
				t.Errorf("linked, sync %v: %d with the content, %d without a name, %d with a name and other content",
					sync, with, without, torn)
			}
			if err := dir.LinkUnnamed(f, "b"); err == nil {
				t.Error("a second name")
			}
			if barrier {
				b, err := p.OpenBarrier("/")
				must(err)
				must(b.Sync())
			} else {
				must(p.SyncDir("/dir"))
			}
			all(func(content string, exists bool) {
				if !exists || (sync || barrier) && content != text {
					t.Errorf("after the sync of the folder: %q, %v", content, exists)
				}
			})
			g, err := dir.CreateUnnamed(0o600)
			must(err)
			if err := dir.LinkUnnamed(g, "a"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("over a name: %v", err)
			}
			must(p.Remove("/dir/a"))
			must(f.Close())
			_, err = g.WriteAt([]byte(text), 0)
			must(err)
			d.Kill(p)
			if d.Used() != used {
				t.Errorf("%d bytes are in use after the process was killed, %d before", d.Used(), used)
			}
		}
	}
	d := New()
	d.SetLacks(Lacks{Unnamed: true})
	if _, err := vfs.OpenDir(d.Process("p"), "/"); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
