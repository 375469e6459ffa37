package backup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// A damaged log of a backup is read in the first of these ways that succeeds: with single wrong
// bits corrected, which the checksums of the frames prove; from the log of the store, if it reaches
// back so far; or as far as it is sound, with holes. The backup itself is never changed.

// stretch is a range of a log. It begins at the mark from and ends at the position to.
type stretch struct {
	past *past.Log
	from wal.Mark
	to   wal.LSN
}

// mendMost is the maximum number of bits that are corrected in one log: after each correction the log is read again.
const mendMost = 64

// log returns the log from which the range of the backup's log is read, and reports damage in that range. This is the
// log of the backup, if necessary with corrected bits, or the log of the store that was backed up, if only that log is
// intact. If both are damaged, it is the log of the backup with gaps. With Strict, damage is an error.
func (r *restore) log(ctx context.Context, from, end wal.Mark) (stretch, error) {
	own := r.backupLog()
	err := checkLog(ctx, own, from, end)
	if err != nil && (r.s.Strict || !holeIn(err)) {
		return stretch{}, fmt.Errorf("reading the backup's log: %w", err)
	}
	if err == nil {
		return stretch{own, from, end.LSN}, nil
	}
	cause := err
	m := &mendedFS{FS: r.from, pieces: map[string][]piece{}}
	own.FS = m
	for n := 0; n < mendMost && err != nil && m.tryMend(ctx, own, err, m.mend); n++ {
		err = checkLog(ctx, own, from, end)
	}
	switch l := r.s.Living; {
	case ctx.Err() != nil:
		return stretch{}, ctx.Err()
	case err == nil:
		for _, name := range m.names() {
			r.noteDamage(backupWAL+"/"+name, reason(cause), "healed: a wrong bit was corrected, the checksum matches")
		}
	case l != nil && l.Geometry == own.Geometry && checkLog(ctx, l, from, end) == nil:
		r.noteDamage(damagedLog(cause), reason(cause), "healed from the log of the store")
		return stretch{l, from, end.LSN}, nil
	default:
		r.cause = cause
		for n := 0; n < mendMost && err != nil && m.tryMend(ctx, own, err, m.fill); n++ {
			err = firstHole(ctx, own, from, end)
		}
		r.holed = true
		if err := r.fresher(ctx, own, from, end); err != nil {
			return stretch{}, err
		}
	}
	r.mended = own
	return stretch{own, from, end.LSN}, nil
}

// holeIn reports whether err means a damaged or missing part of a log, and not a failure to read.
func holeIn(err error) bool {
	return errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrTruncated)
}

// firstHole returns the error of the first damaged place that is not a known gap, or nil if all damaged places are
// known gaps.
func firstHole(ctx context.Context, past *past.Log, from, end wal.Mark) error {
	for _, err := range past.Entries(ctx, from, end.LSN) {
		if gap := (*errs.GapError)(nil); err != nil && !errors.As(err, &gap) {
			return err
		}
	}
	return nil
}

// damagedLog returns the name of the file of the log that an error is about.
func damagedLog(err error) string {
	if c := (*errs.CorruptionError)(nil); errors.As(err, &c) && c.Path != "" {
		return c.Path
	}
	return backupWAL
}

// passed reports whether err is a hole in the log after which the restore continues. If so, passed reports the hole as
// damage of the backup.
func (r *restore) passed(err error) bool {
	if !r.holed || !holeIn(err) {
		return false
	}
	r.cause = nil
	r.noteDamage(damagedLog(err), reason(err),
		missing+": the versions in this part of the log; a document whose newest version was there is restored from "+
			"its file in the backup")
	return true
}

// isLater reports whether err is a gap that does no harm in the log of the store that was backed up: the gap is after
// the requested position, and not before the position from which the backup is complete.
func (r *restore) isLater(err error) bool {
	gap := (*errs.GapError)(nil)
	at := max(r.s.LSN, r.until)
	return errors.As(err, &gap) && at != 0 && gap.From > at && gap.From >= r.info.Whole
}

// unmet reports the damage because of which the log is read with holes, if the restore has read none of the holes. The
// document files have the data of the damaged part.
func (r *restore) unmet() {
	if r.cause != nil {
		r.noteDamage(damagedLog(r.cause), reason(r.cause), "the document files have the data of this part")
	}
}

// fresher finds the documents whose file in the backup is newer than all their entries in a log with holes. The
// bytes of such a file match no entry of the document, and its time is later than the times of the entries.
func (r *restore) fresher(ctx context.Context, own *past.Log, from, end wal.Mark) error {
	type known struct {
		hashes [][sha256.Size]byte
		last   time.Time
	}
	var codec record.Codec
	codec.Bound(own.Geometry.Limit())
	all := map[string]*known{}
	for e, err := range own.Entries(ctx, from, end.LSN) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		name, ok := backupFile(e.Key)
		if err != nil || !ok {
			continue
		}
		k := all[name]
		if k == nil {
			k = &known{}
			all[name] = k
		}
		k.last = e.Time
		if doc, _, err := state.DocumentIn(&codec, &e, places.DocumentMost); err == nil && !e.Delete {
			k.hashes = append(k.hashes, sha256.Sum256(doc))
		}
	}
	r.fresh = map[string]bool{}
	for name, k := range all {
		at, err := places.Enter(r.from, r.s.Backup, name)
		if err != nil {
			continue
		}
		info, err := r.from.Stat(at)
		if err != nil || !info.Mtime.After(k.last) {
			continue
		}
		b, err := vfs.ReadText(r.from, at, places.DocumentMost)
		if err == nil && !slices.Contains(k.hashes, sha256.Sum256(b)) {
			r.fresh[name] = true
		}
	}
	return nil
}

// newerFile reports whether the file in the backup is newer than the versions in the log and may be used. It may be
// used only if the restore is to the end of the backup.
func (r *restore) newerFile(name string) bool {
	return r.fresh[name] && r.s.LSN == 0 && r.s.Time.IsZero()
}

// piece replaces n bytes of a file, from the offset at. The new content is b, followed by zeros up to n bytes.
type piece struct {
	at, n int64
	b     []byte
}

// mendedFS is a file system that returns the content of some files with pieces replaced.
type mendedFS struct {
	vfs.FS
	pieces map[string][]piece // replaced parts, by path
}

func (m *mendedFS) names() (list []string) {
	for path := range m.pieces {
		list = append(list, filepath.Base(path))
	}
	slices.Sort(list)
	return list
}

// OpenFile implements vfs.FS.
func (m *mendedFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := m.FS.OpenFile(name, flag, perm)
	if list := m.pieces[name]; err == nil && len(list) > 0 {
		return mendedFile{f, list}, nil
	}
	return f, err
}

type mendedFile struct {
	vfs.File
	pieces []piece
}

// ReadAt implements vfs.File.
func (f mendedFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	for _, p := range f.pieces {
		from, to := max(p.at, off), min(p.at+p.n, off+int64(n))
		if from >= to {
			continue
		}
		over := b[from-off : to-off]
		clear(over)
		if head := from - p.at; head < int64(len(p.b)) {
			copy(over, p.b[head:])
		}
	}
	return n, err
}

// tryMend calls mend at the position in the log that err reports as damaged. If mend returns false there, tryMend
// calls mend at the beginning of the next segment. tryMend reports whether a call returned true.
func (m *mendedFS) tryMend(ctx context.Context, past *past.Log, err error,
	mend func(context.Context, *past.Log, vfs.File, string, wal.LSN) bool) bool {
	var c *errs.CorruptionError
	if geo := past.Geometry; errors.As(err, &c) && c.LSN != 0 && geo.Size != 0 {
		for _, at := range []wal.LSN{c.LSN, geo.Start(geo.Number(c.LSN) + 1)} {
			path := filepath.Join(past.Dir, segment.Name(geo.Number(at)))
			f, err := m.OpenFile(path, os.O_RDONLY, 0)
			if err != nil {
				continue
			}
			done := mend(ctx, past, f, path, at)
			if f.Close(); done {
				return true
			}
		}
	}
	return false
}

func pieceOf(f vfs.File, n int, off int64) []byte {
	b := make([]byte, n)
	if k, _ := f.ReadAt(b, off); k < n {
		return nil
	}
	return b
}

// mend corrects one wrong bit of the frame that begins at position pos, or of the start of the segment if the
// segment begins there. It changes only what m returns, never the file. mend reports whether it corrected a bit.
func (m *mendedFS) mend(ctx context.Context, past *past.Log, f vfs.File, path string, pos wal.LSN) bool {
	geo := past.Geometry
	offset := geo.Offset(pos)
	turn := func(b []byte, off int64, right func([]byte) bool) bool {
		if b == nil || right(b) || !unflip(ctx, b, right) {
			return false
		}
		m.pieces[path] = append(m.pieces[path], piece{off, int64(len(b)), b})
		return true
	}
	if offset == 0 {
		return turn(pieceOf(f, segment.StartSize, 0), 0, func(b []byte) bool {
			s, h, err := segment.ParseStart(b)
			return err == nil && h.LSN == pos && s.Geometry == geo
		})
	}
	head := pieceOf(f, segment.HeaderSize, offset)
	h, err := geo.ParseHeader(head, pos)
	if err != nil {
		return turn(head, offset, func(b []byte) bool { _, err := geo.ParseHeader(b, pos); return err == nil })
	}
	return turn(pieceOf(f, int(h.Length), offset+segment.HeaderSize), offset+segment.HeaderSize, func(b []byte) bool {
		frame := h
		_, _, err := frame.Check(b)
		return err == nil && frame.Kind == h.Kind
	})
}

// fill replaces the unreadable bytes of a segment by a gap, from position pos up to the next frame with a sound
// header. The gap includes the damaged frame at pos. fill first tries mend. It reports whether it has mended the
// frame or made a gap.
func (m *mendedFS) fill(ctx context.Context, past *past.Log, f vfs.File, path string, pos wal.LSN) bool {
	geo := past.Geometry
	if m.mend(ctx, past, f, path, pos) {
		return true
	}
	before, err := past.Chain(ctx, pos)
	if err != nil {
		return false
	}
	whole := pieceOf(f, int(geo.Size-uint64(geo.Offset(pos))), geo.Offset(pos))
	if whole == nil { // the segment is cut short
		info, err := f.Stat()
		if err != nil || info.Size <= geo.Offset(pos) || info.Size > int64(geo.Size) {
			return false
		}
		if whole = pieceOf(f, int(info.Size-geo.Offset(pos)), geo.Offset(pos)); whole == nil {
			return false
		}
	}
	for off := segment.MinGap; off+segment.HeaderSize <= len(whole) && ctx.Err() == nil; off += 8 {
		next := pos + uint64(off)
		if !segment.MayBeHeader(whole[off:], next) {
			continue
		}
		h, err := geo.ParseHeader(whole[off:], next)
		if err != nil {
			continue
		}
		for _, g := range geo.Gaps(pos, next, before.Sum, h.Previous, h.Time) {
			m.pieces[path] = append(m.pieces[path], piece{geo.Offset(g.At), int64(g.Len), g.Bytes})
		}
		return true
	}
	return false
}

// readInfo reads the backup's description. If a single bit of the description is wrong, it corrects that bit.
func (r *restore) readInfo(ctx context.Context) (err error) {
	if r.info, err = ReadInfo(r.from, r.s.Backup); !r.tolerated(err) {
		return err
	}
	cause := err
	b, rerr := vfs.ReadText(r.from, filepath.Join(r.s.Backup, repair.BackupName), places.BackupMost)
	if rerr == nil && unflip(ctx, b, func(b []byte) bool {
		var i repair.BackupInfo
		if json.Unmarshal(b, &i) != nil {
			return false
		}
		sum, err := sumOf(&i)
		return err == nil && sum == i.Sum
	}) {
		if r.info, err = parseInfo(r.s.Backup, b); err == nil {
			r.noteDamage(repair.BackupName, reason(cause), "healed: one bit was corrected, the checksum matches")
			return nil
		}
	}
	return fmt.Errorf("%w; without this file the content of the backup is unknown; to save the documents, which are "+
		"plain files: make a new store with memctl init, copy the folders memories and assemblies into the new "+
		"store, and run memctl repair --apply", cause)
}
