package wal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// shipped is what a reader has shipped of a log, as a follower would store it.
type shipped struct {
	id    past.ID
	at    Mark
	bytes map[uint64][]byte // of each segment, from its beginning
}

// ship reads what is durable after what was shipped, and returns the first error.
func (s *shipped) ship(p *past.Log, to LSN) error {
	for piece, err := range p.Pieces(context.Background(), s.at, to) {
		if err != nil {
			return err
		}
		number := p.Geometry.Number(piece.At)
		if piece.From != s.at || int(p.Geometry.Offset(piece.At)) != len(s.bytes[number]) {
			return errors.New("the piece does not follow the one before")
		}
		s.bytes[number] = append(s.bytes[number], piece.Bytes...)
		s.at = piece.To
	}
	return nil
}

// begin starts with the first segment of the log.
func (s *shipped) begin(t testing.TB, l *FileLog) {
	t.Helper()
	id, err := l.Past().ID()
	if err != nil {
		t.Fatal(err)
	}
	*s = shipped{id: id, at: Mark{LSN: l.geo.Start(1)}, bytes: map[uint64][]byte{}}
}

// entries opens what was shipped as a log, and compares its entries.
func (s *shipped) entries(t testing.TB, geo segment.Geometry, want []Entry) {
	t.Helper()
	dir := t.TempDir()
	for n, b := range s.bytes {
		if err := os.WriteFile(filepath.Join(dir, segment.Name(n)), append(b, make([]byte, segment.HeaderSize)...),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &past.Log{FS: vfs.OS(), Dir: dir, Geometry: geo}
	i := 0
	for e, err := range p.Entries(t.Context(), Mark{LSN: geo.Start(1)}, s.at.LSN) {
		if err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
		if i == len(want) || e.LSN != want[i].LSN || e.Key != want[i].Key || !bytes.Equal(e.Value, want[i].Value) {
			t.Fatalf("entry %d of %d is %d %s", i, len(want), e.LSN, e.Key)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d entries were shipped, want %d", i, len(want))
	}
}

// A reader next to a writer, through the open log, gets each batch once, complete and in order, while segments
// are released into the archive and recycled.
func TestPiecesBesideWriter(t *testing.T) {
	t.Parallel()
	l, dir := openIn(t)
	var s shipped
	s.begin(t, l)
	list := fill(t, l, 4) // the reader is behind: it finds the first segments in the archive
	let(t, l)
	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			default:
			}
			if err := s.ship(l.Past(), l.Durable()); err != nil {
				failed <- err
				return
			}
		}
	}()
	for n := uint64(5); n <= 12; n++ {
		list = append(list, fill(t, l, n)...)
		let(t, l)
	}
	close(done)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if s.at.LSN != l.Durable() {
		t.Errorf("shipped up to %d of %d", s.at.LSN, l.Durable())
	}
	if _, err := os.Stat(copyPath(dir, 5)); err != nil {
		t.Error("nothing was archived:", err)
	}
	if err := l.Past().Continues(t.Context(), s.id, s.at); err != nil {
		t.Error(err)
	}
	s.entries(t, l.geo, list)
}

// Another process that reads without opening the log gets the same as through the open log.
func TestPiecesThroughFileLog(t *testing.T) {
	t.Parallel()
	l, dir := openIn(t)
	list := fill(t, l, 4)
	let(t, l)
	list = append(list, fill(t, l, 6)...)
	var through, beside shipped
	through.begin(t, l)
	beside.begin(t, l)
	p := &past.Log{FS: vfs.OS(), Dir: filepath.Join(dir, "wal"), Geometry: l.geo}
	if err := errors.Join(through.ship(l.Past(), l.Durable()), beside.ship(p, l.Durable())); err != nil {
		t.Fatal(err)
	}
	if through.at != beside.at || through.at != l.AppliedMark() {
		t.Errorf("through the log up to %+v, beside it up to %+v, applied %+v", through.at, beside.at, l.AppliedMark())
	}
	through.entries(t, l.geo, list)
	beside.entries(t, l.geo, list)
}
