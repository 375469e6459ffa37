package past_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

var moment = time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)

func broken(t testing.TB, p *past.Log, reason past.Reason, next past.LSN) {
	t.Helper()
	if err := p.Broken(reason, next, moment, 0o600); err != nil {
		t.Fatal(err)
	}
}

func idOf(t testing.TB, p *past.Log) past.ID {
	t.Helper()
	id, err := p.ID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A mark within a frame, as where another log has replaced this one, is no damage: the log that was followed is gone.
func TestEndedWithinFrame(t *testing.T) {
	w := write(2)
	p := w.put(t, 1)
	for _, frame := range []int{0, 1, len(w.frames) - 2} {
		for _, before := range []past.LSN{8, 64, 200} {
			err := p.Continues(t.Context(), idOf(t, p), past.Mark{LSN: w.frames[frame] - before, Sum: 1})
			if !errors.Is(err, past.ErrBegunAgain) {
				t.Errorf("%d bytes before the end of frame %d: %v", before, frame, err)
			}
		}
	}
}

// Every reader gets the reason why the log that it followed has ended, whatever came later.
func TestEnded(t *testing.T) {
	w := write(1)
	p := w.put(t, 0)
	at := w.before(w.end.LSN)
	type follower struct {
		id   past.ID
		want past.Reason
	}
	var followers []follower
	for _, reason := range []past.Reason{past.Purged, past.Repaired, past.Restored, past.FilesLost, 77} {
		followers = append(followers, follower{idOf(t, p), reason})
		broken(t, p, reason, geo.Start(9))
	}
	p = &past.Log{FS: vfs.OS(), Dir: p.Dir, Geometry: geo} // as another process does
	for _, f := range followers {
		err := p.Continues(t.Context(), f.id, at)
		var ended *past.EndedError
		if !errors.As(err, &ended) || ended.Reason != f.want || ended.At != at.LSN || !errors.Is(err, past.ErrBegunAgain) {
			t.Errorf("want %v: %v", f.want, err)
		} else if text := err.Error(); !strings.Contains(text, f.want.String()) || !strings.Contains(text, "→") ||
			strings.Contains(text, "\n") {
			t.Error(text)
		}
	}
	if err := p.Continues(t.Context(), idOf(t, p), at); err != nil {
		t.Error("the log of now:", err)
	}
	other := idOf(t, p)
	other.Store[3]++
	later := idOf(t, p)
	later.Epoch++ // of a store whose files were replaced by older ones
	for _, id := range []past.ID{other, later} {
		if err := p.Continues(t.Context(), id, at); !errors.Is(err, past.ErrBegunAgain) {
			t.Error(err)
		}
	}
	for range 100 {
		broken(t, p, past.Purged, at.LSN)
	}
	if list, err := p.Endings(); err != nil || len(list) != 64 {
		t.Error(len(list), err)
	}
	if err := p.Continues(t.Context(), followers[0].id, at); !errors.Is(err, past.ErrBegunAgain) {
		t.Error("after its record went:", err)
	}
}

// Epochs differ from all that a damaged record had, even with a clock that is behind.
func TestEndedEpochs(t *testing.T) {
	p := write(1).put(t, 0)
	last := uint64(0)
	for _, now := range []time.Time{moment, moment, moment.Add(-time.Hour), {}, time.Unix(1<<40, 0)} {
		if err := p.Broken(past.Purged, 1, now, 0o600); err != nil {
			t.Fatal(err)
		}
		id := idOf(t, p)
		if id.Epoch <= last {
			t.Fatalf("epoch %d behind %d", id.Epoch, last)
		}
		last = id.Epoch
	}
}

// small is a file of the log that is untrusted input: what a program writes, and what must be ignored.
type small struct {
	name string
	read func(p *past.Log) error
	set  func(p *past.Log) error
}

// sign sets the checksum that a program would write.
func sign(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(bytes.Clone(b), xxhash.Sum64(b))
}

// Whatever is in wal/ended or wal/sent beyond what a program writes is ignored and crashes no program: each
// file is damaged, or of a newer version, and the next record replaces it.
func TestSmallForged(t *testing.T) {
	w := write(1)
	at := w.before(w.end.LSN)
	for _, f := range []small{
		{"ended", func(p *past.Log) error { _, err := p.Endings(); return err },
			func(p *past.Log) error { return p.Broken(past.Purged, 1, moment, 0o600) }},
		{"sent", func(p *past.Log) error { _, _, err := p.Sent(w.end.LSN); return err },
			func(p *past.Log) error { return p.SetSent(past.ID{Store: geo.UUID}, at, 7, moment, 0o600) }},
	} {
		p := w.put(t, 0)
		path := filepath.Join(p.Dir, f.name)
		if err := errors.Join(f.set(p), f.read(p)); err != nil {
			t.Fatal(err)
		}
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		body := sound[:len(sound)-8]
		change := func(off int, v uint64) []byte {
			b := bytes.Clone(body)
			binary.LittleEndian.PutUint64(b[off:], v)
			return sign(b)
		}
		forged := map[string][]byte{
			"empty": {}, "cut": sound[:len(sound)-1], "longer": append(bytes.Clone(sound), 0), "head only": sound[:16],
			"no magic": change(0, 1), "of another store": change(16, 7), "signed, cut": sign(body[:len(body)-8]),
			"signed, longer": sign(append(bytes.Clone(body), make([]byte, 32)...)),
			"large":          make([]byte, 1<<20), "format 0": change(8, 0),
		}
		if f.name == "ended" {
			forged["no record"] = change(8, 1)
			forged["count"] = change(8, 1|1<<32*65)
			forged["most records"] = change(8, 1|0xffffffff<<32)
			forged["epoch 0"] = change(32, 0)
			forged["last epoch"] = change(32, 1<<63)
			forged["time"] = change(48, 1<<62)
			forged["time before 1970"] = change(48, 1<<63)
			two := append(bytes.Clone(body), body[32:]...)
			binary.LittleEndian.PutUint32(two[12:], 2)
			forged["epoch twice"] = sign(two)
		} else {
			forged["position 0"] = change(40, 0)
			forged["position"] = change(40, at.LSN+4)
			forged["last position"] = change(40, ^uint64(0))
			forged["time"] = change(56, 1<<62)
		}
		for i := range sound {
			b := bytes.Clone(sound)
			b[i] ^= 0x10
			forged["flip "+string(rune('0'+i%10))+string(rune('0'+i/10))] = b
		}
		for name, b := range forged {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := f.read(p); !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNewerFormat) {
				t.Errorf("%s, %s: %v", f.name, name, err)
			}
			if err := errors.Join(f.set(p), f.read(p)); err != nil && !errors.Is(err, errs.ErrNewerFormat) {
				t.Errorf("%s, %s, written again: %v", f.name, name, err)
			}
		}
		for _, v := range []uint64{2, 1<<32 - 1} {
			if err := os.WriteFile(path, change(8, v), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := f.read(p); !errors.Is(err, errs.ErrNewerFormat) || errors.Is(err, errs.ErrCorrupt) {
				t.Errorf("%s of version %d: %v", f.name, v, err)
			}
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := f.read(p); err == nil {
			t.Errorf("%s is a folder: no error", f.name)
		}
	}
}

// The mark names what a copy has, and of which log.
func TestSent(t *testing.T) {
	w := write(4)
	p := w.put(t, 3)
	if s, ok, err := p.Sent(w.end.LSN); ok || err != nil {
		t.Fatal(s, ok, err)
	}
	id, at := idOf(t, p), w.before(geo.End(2))
	set := func(at past.Mark) {
		t.Helper()
		if err := p.SetSent(id, at, 7, moment, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(at)
	if s, ok, err := p.Sent(w.end.LSN); !ok || err != nil || s.Mark != at || s.ID != id || s.Copy != 7 ||
		!s.Time.Equal(moment) ||
		s.Behind != w.end.LSN-at.LSN {
		t.Fatalf("%+v %v %v", s, ok, err)
	}
	if _, ok, err := p.Sent(at.LSN - 8); !ok || !errors.Is(err, past.ErrBegunAgain) {
		t.Error("a mark beyond what is durable:", ok, err)
	}
	if err := p.SetSent(id, past.Mark{LSN: 3}, 7, moment, 0o600); !errors.Is(err, errs.ErrInvalid) {
		t.Error("a mark where no batch ends:", err)
	}
	remove := func(n uint64) {
		t.Helper()
		if err := os.Remove(filepath.Join(p.Dir, past.CopyName(n))); err != nil {
			t.Fatal(err)
		}
	}
	remove(1)
	if _, _, err := p.Sent(w.end.LSN); err != nil {
		t.Error("what was sent is removed:", err)
	}
	remove(2)
	if _, _, err := p.Sent(w.end.LSN); err != nil {
		t.Error("the mark is where the removed segment ends:", err)
	}
	set(w.before(at.LSN))
	var behind *errs.CopyBehindError
	if _, ok, err := p.Sent(w.end.LSN); !ok || !errors.As(err, &behind) ||
		behind.Oldest != geo.Start(3)+segment.StartSize ||
		!errors.Is(err, errs.ErrCopyBehind) {
		t.Error("what was not sent is removed:", ok, err)
	}
	broken(t, p, past.Purged, w.end.LSN)
	var ended *past.EndedError
	if _, ok, err := p.Sent(w.end.LSN); !ok || !errors.As(err, &ended) || ended.Reason != past.Purged {
		t.Error("the log has ended:", ok, err)
	}
	if err := p.SetSent(id, at, 7, moment, 0o600); !errors.As(err, &ended) {
		t.Error("a mark of a log that has ended:", err)
	}
	for range 2 {
		if err := p.ForgetSent(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := p.Sent(w.end.LSN); ok || err != nil {
		t.Error(ok, err)
	}
}
