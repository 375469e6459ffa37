package fuzz

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// Native fuzzing of what a store reads: go test ./fuzz -fuzz FuzzCheckpoint. Frames,
// records, index lines, tables, memory JSON and the importers have targets beside
// their code.

// fuzzed is a small store that lost power: with files, index, log and archive.
func fuzzed(tb testing.TB) *rotten {
	r := &rotten{m: newMachine(), h: newHistory(), name: "fuzzed"}
	rotSmall(r.m, r.h)
	r.m = r.m.future(crash.LoseAll, 1)
	r.h.powerLost()
	// The fuzzer names memories as it likes: what counts is that each was put.
	_, o := r.m.future(crash.KeepAll, 0).process("look")
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	for _, id := range r.h.known() {
		if m, err := st.Get(ctx, id); err == nil {
			for _, w := range r.h.writes {
				if w.token == tokenOf(m.Content) {
					w.version = m.Version
				}
			}
		} else if !errors.Is(err, varve.ErrNotFound) {
			tb.Fatal(err)
		}
	}
	st.Close()
	return r
}

// replace puts data in a file's place and opens, reads, writes, closes and opens again.
func (r *rotten) replace(t *testing.T, name string, data []byte) {
	r.change(t, func(fsys vfs.FS) error {
		return vfs.WriteDurable(fsys, dir+"/new", filepath.Join(dir, name), data, 0o600)
	})
}

func (r *rotten) change(t *testing.T, damage func(vfs.FS) error) {
	c := &rotCase{r: r, ends: never64, anything: true}
	before := allocated()
	c.run(r.m.future(crash.KeepAll, 0), damage)
	if more := allocated() - before; more > 256<<20 {
		t.Fatalf("%d MiB allocated", more>>20)
	}
	if len(c.wrong) > 0 {
		t.Fatalf("%s\n%v", joinWrong(c.wrong), c.errs)
	}
}

func fuzzFile(f *testing.F, name string) {
	r := fuzzed(f)
	fsys, _ := r.m.process("seed")
	good, err := vfs.ReadFile(fsys, filepath.Join(dir, name), 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		r.replace(t, name, data[:min(len(data), 1<<20)])
	})
}

func FuzzCheckpoint(f *testing.F) { fuzzFile(f, "checkpoint") }
func FuzzConfig(f *testing.F)     { fuzzFile(f, "config.json") }
func FuzzIndex(f *testing.F)      { fuzzFile(f, "memory_index.json") }
func FuzzShared(f *testing.F)     { fuzzFile(f, "wal/shared") }
func FuzzOwner(f *testing.F)      { fuzzFile(f, "wal/owner") }

// FuzzRecovery writes over the files of the log, wherever the input says: pieces of
// which each begins with the file (one byte), the place (three), and a length (one).
func FuzzRecovery(f *testing.F) {
	r := fuzzed(f)
	fsys, _ := r.m.process("list")
	var files []string
	names, err := fsys.ReadDir(filepath.Join(dir, "wal"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") {
			files = append(files, "wal/"+name)
		}
	}
	files = append(files, "checkpoint")
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{1, 0, 64, 0, 4, 0, 0, 0, 0, 2, 0, 0, 20, 2, 0xff, 0xff})
	f.Add([]byte{1, 0xa1, 0x10, 0, 1, 4, 0, 0, 0, 40, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		r.change(t, func(fsys vfs.FS) error {
			for len(data) >= 5 {
				name := files[int(data[0])%len(files)]
				at := int64(binary.LittleEndian.Uint32(data[0:4]) >> 8)
				n := min(int(data[4]), len(data)-5)
				piece := data[5 : 5+n]
				data = data[5+n:]
				file, err := fsys.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
				if err != nil {
					return err
				}
				info, err := file.Stat()
				if err == nil && n == 0 { // cut
					err = file.Truncate(at % (info.Size + 1))
				} else if err == nil {
					_, err = file.WriteAt(piece, at%(info.Size+1))
				}
				if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
