package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

// FAILURES 63: a reader that has a file open continues to read its old bytes.
func TestReaderAcrossReplace(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	r, err := os.Open(b.folder.Path("a.json"))
	if err != nil {
		t.Fatal(err)
	}
	b.put(b.change("a.json", 1, 2), b.change("b.json", 1, 2))
	b.put(b.change("a.json", 2, 3), b.change("b.json", 2, 3))
	buf := make([]byte, 1000)
	n, _ := r.ReadAt(buf, 0)
	if string(buf[:n]) != doc("a.json", 1) {
		t.Fatalf("the reader of version 1 got %q", buf[:n])
	}
	if len(b.files("tmp", "parked")) != 1 {
		t.Fatal("the file that is being read is not parked")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	skipWithoutLeases(t, b)
	b.put()
	if left := b.files("tmp", "parked"); len(left) != 0 {
		t.Fatalf("still parked: %v", left)
	}
	b.wantSetAside()
}

// FAILURES 63, 81: an editor holds a displaced file open and saves into it.
func TestEditorSavesIntoDisplaced(t *testing.T) {
	for _, stillOpen := range []bool{false, true} {
		t.Run(fmt.Sprint(stillOpen), func(t *testing.T) {
			b := newBed(t, nil)
			b.put(b.change("a.json", 0, 1))
			e, err := os.OpenFile(b.folder.Path("a.json"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			b.put(b.change("a.json", 1, 2))
			// A process may die meanwhile; the next process finds the parked file.
			b.fl = b.flusher("other", nil)
			b.put(b.change("b.json", 0, 1))
			text := strings.Repeat("by hand\n", 9)
			if _, err := e.WriteAt([]byte(text), 0); err != nil {
				t.Fatal(err)
			}
			if err := e.Truncate(int64(len(text))); err != nil {
				t.Fatal(err)
			}
			if !stillOpen {
				e.Close()
			}
			r := b.round()
			if len(r.Edits) != 1 || r.Edits[0].Change != -1 || r.Edits[0].Folder != "memories" || r.Edits[0].Name != "a.json" {
				t.Fatalf("reported: %+v", r.Edits)
			}
			b.wantSetAside(text)
			b.want("a.json", 2)
			if left := b.files("tmp", "parked"); len(left) != 0 {
				t.Fatalf("still parked: %v", left)
			}
		})
	}
}

// Where leases are not supported, a displaced file waits for a minute and is examined again.
func TestNoLeases(t *testing.T) {
	b := newBed(t, nil)
	b.fs.on = func(op, _ string) error {
		if op == "lease" {
			return errors.ErrUnsupported
		}
		return nil
	}
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	b.put(b.change("a.json", 1, 2), b.change("b.json", 1, 2))
	b.now = b.now.Add(59 * time.Second)
	b.put()
	parked := b.files("tmp", "parked")
	if len(parked) != 2 {
		t.Fatalf("parked: %v", parked)
	}
	for p, data := range parked {
		if strings.Contains(p, "b.json") {
			b.write(b.path("tmp", "parked", p), data+"by hand")
		}
	}
	b.now = b.now.Add(time.Second)
	if r := b.round(); len(r.Edits) != 1 || r.Edits[0].Name != "b.json" {
		t.Fatalf("%+v", r)
	}
	b.wantSetAside(doc("b.json", 1) + "by hand")
	if left := b.files("tmp", "parked"); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
}

// FAILURES 73: another program saved the file since the last round.
func TestHandEdit(t *testing.T) {
	saves := map[string]func(b *bed, text string){
		"in place": func(b *bed, text string) { b.write(b.folder.Path("a.json"), text) },
		"by rename": func(b *bed, text string) {
			b.write(b.path("x"), text)
			if err := os.Rename(b.path("x"), b.folder.Path("a.json")); err != nil {
				b.t.Fatal(err)
			}
		},
		"old time, same size": func(b *bed, text string) {
			b.write(b.folder.Path("a.json"), text)
			if err := os.Chtimes(b.folder.Path("a.json"), b.mtime(1), b.mtime(1)); err != nil {
				b.t.Fatal(err)
			}
		},
	}
	for how, save := range saves {
		for _, when := range []string{"before the round", "before the exchange"} {
			for _, to := range []int{0, 2} {
				for _, without := range []string{"", "exchange", "link"} {
					t.Run(fmt.Sprintf("%s/%s/to=%d/without=%s", how, when, to, without), func(t *testing.T) {
						b := newBed(t, nil)
						b.put(b.change("a.json", 0, 1))
						text := strings.ReplaceAll(doc("a.json", 1), "x", "y")
						armed := when == "before the exchange"
						b.fs.on = func(op, name string) error {
							// The save comes in the last moment before the file is displaced.
							if armed && (op == "exchange" || op == "renamenew") && strings.Contains(name, "memories") != (op == "renamenew") {
								armed = false
								save(b, text)
							}
							if op == without {
								return errors.ErrUnsupported
							}
							return nil
						}
						if armed && without != "exchange" && to != 0 {
							b.fs.on = func(op, _ string) error {
								if armed && op == "exchange" {
									armed = false
									save(b, text)
								}
								if op == without {
									return errors.ErrUnsupported
								}
								return nil
							}
						}
						if when == "before the round" {
							save(b, text)
						}
						c := b.change("a.json", 1, to)
						c.Before.Hash = contentHash([]byte(doc("a.json", 1)))
						r := b.round(c)
						if armed {
							t.Fatal("the hook was never called")
						}
						if len(r.Edits) != 1 || r.Edits[0].Change != 0 || r.Edits[0].Name != "a.json" {
							t.Fatalf("reported: %+v", r)
						}
						if got := b.files()[r.Edits[0].Where]; got != text {
							t.Fatalf("%s has %q", r.Edits[0].Where, got)
						}
						b.wantSetAside(text)
						if to == 0 {
							if _, err := b.folder.Stat("a.json"); !errors.Is(err, fs.ErrNotExist) {
								t.Fatal(err)
							}
						} else {
							b.want("a.json", to)
						}
						for p, data := range b.files("quarantine") {
							if strings.HasSuffix(p, noteSuffix) && (!strings.Contains(data, "id of a.json") || !strings.Contains(data, "s1")) {
								t.Fatalf("the note does not say what was known: %s", data)
							}
						}
						// The inode in quarantine is not used for anything else.
						b.put(b.change("z.json", 0, 1), b.change("y.json", 0, 1))
						b.wantSetAside(text)
					})
				}
			}
		}
	}
}

// The place holds a version that the caller knows, or was expected to be empty.
func TestKnownVersionIsNoEdit(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	b.write(b.folder.Path("a.json"), doc("a.json", 1)) // git checkout: same bytes, other time
	b.write(b.folder.Path("b.json"), "")               // nothing to lose
	b.put(b.change("a.json", 1, 2), b.change("b.json", 1, 2))
	b.want("a.json", 2)
	b.put(b.change("a.json", 0, 2)) // the same again, with nothing known
	b.want("a.json", 2)
	b.wantSetAside()
}

// Another program created a file where none was expected.
func TestNewFileInThePlace(t *testing.T) {
	b := newBed(t, nil)
	b.write(b.folder.Path("a.json"), "mine")
	if r := b.round(b.change("a.json", 0, 1)); len(r.Edits) != 1 {
		t.Fatalf("%+v", r)
	}
	b.want("a.json", 1)
	b.wantSetAside("mine")
}

func TestMissing(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	os.Remove(b.folder.Path("a.json"))
	os.Remove(b.folder.Path("b.json"))
	r := b.round(b.change("a.json", 1, 2), b.change("b.json", 1, 0), b.change("c.json", 0, 0))
	if fmt.Sprint(r.Missing) != "[0 1]" || len(r.Edits) > 0 {
		t.Fatalf("%+v", r)
	}
	b.want("a.json", 2)
}

// FAILURES 63: the backup of x is not written into.
func TestHardLink(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	if err := os.Link(b.folder.Path("a.json"), b.path("backup")); err != nil {
		t.Skip(err)
	}
	b.put(b.change("a.json", 1, 2), b.change("b.json", 1, 2), b.change("c.json", 0, 1))
	b.put(b.change("a.json", 2, 3), b.change("b.json", 2, 3))
	if got := b.files()["backup"]; got != doc("a.json", 1) {
		t.Fatalf("the backup has %q", got)
	}
	b.wantSetAside()
}

// A surplus file that is in a place because a power loss interrupted a round.
func TestSurplusInThePlace(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1))
	b.write(b.folder.Path("a.json"), "half of two documents")
	if err := os.Chtimes(b.folder.Path("a.json"), surplusTime, surplusTime); err != nil {
		t.Fatal(err)
	}
	b.put(b.change("a.json", 1, 2))
	b.want("a.json", 2)
	b.wantSetAside()
}
