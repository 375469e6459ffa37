package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/forge"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/segment"
)

// Native fuzzing of what a store reads: go test ./fuzz -fuzz FuzzCheckpoint. Frames, records, index
// lines, tables, memory JSON and the importers have fuzz targets in their own packages.

// fuzzed returns a small store that lost power: with files, index, log and archive.
func fuzzed(tb testing.TB) *rotten {
	r := &rotten{m: newMachine(), h: newHistory(), name: "fuzzed"}
	rotSmall(r.m, r.h)
	r.m = r.m.future(crash.LoseAll, 1)
	r.h.powerLost()
	// The fuzzer names memories as it likes: all that matters is that each was put.
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

// fuzzWait is the time limit of one input. On an idle machine it needs some ten milliseconds.
const fuzzWait = 60 * time.Second

// replace puts data in a file's place and opens, reads, writes, closes and opens again.
func (r *rotten) replace(t *testing.T, name string, data []byte) {
	r.change(t, func(fsys vfs.FS) error {
		return vfs.WriteDurable(fsys, dir+"/new", filepath.Join(dir, name), data, 0o600)
	})
}

func (r *rotten) change(t *testing.T, damage func(vfs.FS) error) { r.changeTo(t, damage, false) }

// forge is change for signed data: see package forge.
func (r *rotten) forge(t *testing.T, damage func(vfs.FS) error) { r.changeTo(t, damage, true) }

func (r *rotten) changeTo(t *testing.T, damage func(vfs.FS) error, forged bool) {
	// An endless loop is otherwise noticed only in operations on files: see run.
	watch := time.AfterFunc(fuzzWait, func() { panic("no end in sight") })
	defer watch.Stop()
	c := &rotCase{r: r, ends: never64, anything: true, forged: forged}
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

func FuzzConfig(f *testing.F) { fuzzFile(f, "config.json") }
func FuzzIndex(f *testing.F)  { fuzzFile(f, "memory_index.json") }
func FuzzShared(f *testing.F) { fuzzFile(f, "wal/shared") }
func FuzzOwner(f *testing.F)  { fuzzFile(f, "wal/owner") }

// FuzzCheckpoint puts an input in the checkpoint's place as it is, and with valid checksums in its
// slots: their content is untrusted too.
func FuzzCheckpoint(f *testing.F) {
	proofs.OneGoroutine(f)
	r := fuzzed(f)
	fsys, _ := r.m.process("seed")
	good, err := vfs.ReadFile(fsys, filepath.Join(dir, "checkpoint"), 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte{})
	for _, change := range []func(*forge.Slot){
		func(s *forge.Slot) { s.SegmentSize = 0 },
		func(s *forge.Slot) { s.Spilled.LSN = 1 << 63 },
		func(s *forge.Slot) { s.Attested = forge.Mark{} },
		func(s *forge.Slot) { s.Flushed, s.Spilled = s.Spilled, s.Attested },
		func(s *forge.Slot) { s.Attested.LSN = 1 << 47 },
		func(s *forge.Slot) {
			s.Attested.LSN = 1 << 47
			s.Spilled, s.Flushed = s.Attested, s.Attested
		},
	} {
		var both []byte
		for i := range 2 {
			s := forge.ParseSlot(good[i*forge.SlotSize:])
			change(&s)
			both = append(both, s.Encode()...)
		}
		f.Add(both)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 2*forge.SlotSize)]
		r.replace(t, "checkpoint", data)
		signed := bytes.Clone(data)
		for at := 0; at < len(signed); at += forge.SlotSize {
			forge.SealSlot(signed[at:])
		}
		if !bytes.Equal(signed, data) {
			r.forge(t, func(fsys vfs.FS) error {
				return vfs.WriteDurable(fsys, dir+"/new", filepath.Join(dir, "checkpoint"), signed, 0o600)
			})
		}
	})
}

// FuzzRecovery overwrites the files of the log at positions in the input: pieces of which each begins
// with the file (one byte), the place (three), and a length (one). Then it does so again and recomputes
// the checksums of all frames and slots.
func FuzzRecovery(f *testing.F) {
	proofs.OneGoroutine(f)
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
		r.change(t, func(fsys vfs.FS) error { return patch(fsys, files, data) })
		r.forge(t, func(fsys vfs.FS) error {
			if err := patch(fsys, files, data); err != nil {
				return err
			}
			return reseal(fsys, files)
		})
	})
}

// patch applies an input of FuzzRecovery to files.
func patch(fsys vfs.FS, files []string, data []byte) error {
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
}

// reseal recomputes the checksums of the log's files: each frame names the one before it, each segment
// the end of the one before it, and the marks of the checkpoint, if a frame still ends there, that
// frame.
func reseal(fsys vfs.FS, files []string) error {
	s, err := forge.Newest(fsys, dir)
	if err != nil {
		s, err = forge.Slot{}, nil // as good as any: its content is unknown
	}
	geo := segment.Geometry{UUID: s.UUID, Size: s.SegmentSize}
	sums := map[uint64]uint64{} // of the frame that ends there
	var end, sum uint64
	for _, name := range files {
		path := filepath.Join(dir, name)
		b, err := vfs.ReadFile(fsys, path, 1<<20)
		if err != nil {
			return err
		}
		if number, ok := segment.ParseName(filepath.Base(name)); ok && geo.Valid() {
			if len(b) >= segment.StartSize && end != 0 {
				binary.LittleEndian.PutUint64(b[segment.HeaderSize+48:], end)
				binary.LittleEndian.PutUint64(b[segment.HeaderSize+56:], sum)
				binary.LittleEndian.PutUint64(b[48:], sum)
			}
			end, sum = forge.SealSegment(geo, number, b, func(end, sum uint64) { sums[end] = sum })
		}
		if name == "checkpoint" {
			for at := 0; at+forge.SlotSize <= len(b); at += forge.SlotSize {
				s := forge.ParseSlot(b[at:])
				for _, m := range []*forge.Mark{&s.Flushed, &s.Spilled, &s.Attested} {
					if sum, ok := sums[m.LSN]; ok {
						m.Sum = sum
					}
				}
				copy(b[at:], s.Encode())
			}
		}
		if err := forge.WriteAt(fsys, path, b, 0); err != nil {
			return err
		}
	}
	return nil
}
