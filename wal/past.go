package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Past reads a log as far back as it is kept: its segments, and the copies in archive/ of those
// that were recycled. It takes no lock and keeps no file open between two calls, so it can be used
// for a read-only handle and for a folder that is no longer written to, such as a backup's.
//
// If a segment is recycled during a read, reading continues in its copy, which is durable before
// the recycling begins. If neither exists, the past has a hole: that is a *errs.TruncatedError, and
// never treated as the log's end.
type Past struct {
	FS       vfs.FS
	Dir      string // where the segments lie, and archive/
	Geometry segment.Geometry
}

// Past returns the past of this log.
func (l *FileLog) Past() *Past {
	return &Past{FS: l.o.FS, Dir: l.o.walDir(), Geometry: l.geo}
}

// History reads the durable entries from an LSN on, including those that only the archive still
// has; 0 begins as far back as there is no hole. After an error that is damage or a hole, reading
// on yields what follows it.
func (l *FileLog) History(ctx context.Context, from LSN) iter.Seq2[Entry, error] {
	return l.Past().Entries(ctx, Mark{LSN: from}, l.Durable())
}

// Entries reads the entries in [from, to). from is where a frame begins or where the frames of a
// segment end; with its chain hash, the first frame must follow that hash, without it the first
// frame is verified by its own checksum only. from 0 is as far back as there is no hole below to.
// See FileLog.History.
func (p *Past) Entries(ctx context.Context, from Mark, to LSN) iter.Seq2[Entry, error] {
	return p.EntriesOf(ctx, from, to, nil)
}

// EntriesOf reads the entries whose keys are wanted; nil: all. The others cost only their reading.
func (p *Past) EntriesOf(ctx context.Context, from Mark, to LSN, want func(key []byte) bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if from.LSN == 0 {
			oldest, _, _, err := p.oldest(to)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			from.LSN = oldest
		}
		err := p.walk(ctx, from, to, func(h *segment.Header, payload []byte, err error) bool {
			switch {
			case err != nil:
				return yield(Entry{}, err)
			case h.Kind < kindUser, want != nil && !want(payload[:h.KeyLen]):
				return true
			}
			return yield(entryOf(h, payload), nil)
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(Entry{}, err)
		}
	}
}

// Erased reports whether a purge has erased a frame between a position and another.
func (p *Past) Erased(ctx context.Context, from Mark, to LSN) (found bool, err error) {
	if from.LSN >= to {
		return false, nil
	}
	err = p.walk(ctx, from, to, func(h *segment.Header, _ []byte, err error) bool {
		found = found || err == nil && h.Kind == segment.KindErased
		return !found
	})
	if found || errors.Is(err, errStop) {
		err = nil
	}
	return found, err
}

var errStop = errors.New("the caller ended the reading")

// walk visits the frames of [from, to). Damage and holes are told to visit,
// which may have the walk go on behind them.
func (p *Past) walk(ctx context.Context, from Mark, to LSN, visit func(*segment.Header, []byte, error) bool) (err error) {
	files := &pastFiles{p: p}
	defer files.close()
	w := walker{geo: p.Geometry, past: files.open, at: from, linked: from.Sum != 0}
	var gap *errs.GapError // the frames that were just passed say that nothing is left
	defer func() {
		if gap != nil && err == nil && !visit(nil, nil, gap) {
			err = errStop
		}
	}()
	var first *errNoFrame // what was found before the copies were asked
	var anew LSN          // a position that was looked at from the beginning a second time
	for n := 0; w.at.LSN < to; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		h, payload, err := p.next(&w, to)
		var none *errNoFrame
		if errors.As(err, &none) {
			if first == nil {
				first = none
			}
			if files.fallOver(w.at.LSN) {
				w.have = 0
				continue
			}
			if anew != w.at.LSN {
				// A copy that was not there yet may be now, and the file that was asked
				// in its place recycled.
				anew, files.fell, w.have = w.at.LSN, nil, 0
				continue
			}
			lost, next, err := p.hole(first, to)
			if err != nil {
				return err
			}
			if lost != nil && !visit(nil, nil, lost) {
				return errStop
			}
			if next >= to {
				return nil
			}
			w.at, w.linked, w.have, first = Mark{LSN: next}, false, 0, nil
			continue
		}
		if err != nil {
			return err
		}
		first = nil
		if gap != nil && h.Kind != segment.KindGap {
			lost := gap
			if gap = nil; !visit(nil, nil, lost) {
				return errStop
			}
		}
		if h.End() > to {
			return nil // a position inside a frame is behind what was asked for
		}
		if h.Kind == segment.KindGap {
			if gap == nil {
				gap = &errs.GapError{From: h.LSN}
			}
			gap.To = h.End()
			continue
		}
		if !visit(&h, payload, nil) {
			return errStop
		}
	}
	return nil
}

// next is the walker's, and begins also at the very start of a segment.
func (p *Past) next(w *walker, to LSN) (segment.Header, []byte, error) {
	number := p.Geometry.Number(w.at.LSN)
	if w.linked || p.Geometry.Offset(w.at.LSN) != 0 {
		return w.next(to)
	}
	_, h, err := w.start(number)
	if err != nil && isNoFrame(err) {
		err = &errNoFrame{at: w.at.LSN, here: segment.ErrEnd, next: err}
	}
	if err == nil {
		w.at, w.linked = Mark{h.End(), h.Sum}, true
	}
	return h, nil, err
}

// hole says what is at a place below to where no frame is, and where reading may go on behind it: a
// segment that is nowhere any more, damage, or nothing that is lost.
func (p *Past) hole(none *errNoFrame, to LSN) (lost error, next LSN, err error) {
	geo := p.Geometry
	number := geo.Number(none.at)
	if geo.Offset(none.at) == 0 {
		number-- // the frames of the segment before filled it
	}
	_, _, here := p.start(number)
	_, _, after := p.start(number + 1)
	for _, err := range []error{here, after} {
		if err != nil && !isNoFrame(err) {
			return nil, 0, err // not read is neither damaged nor gone
		}
	}
	ended := errors.Is(none.here, segment.ErrEnd)
	missing := gone(here) || ended && gone(after) && to > geo.Start(number+1)
	behind, err := p.numbers()
	if err != nil {
		return nil, 0, err
	}
	for _, n := range behind { // not by what to says, which may be a mark that was made up
		if n <= number || n > geo.Number(to-1) {
			continue
		}
		if s, h, err := p.start(n); err == nil {
			if next = h.End(); s.PrevEnd == 0 && ended && n <= number+2+spares {
				return nil, next, nil // a repair has begun the log again behind its end
			}
			break
		} else if !isNoFrame(err) {
			return nil, 0, err
		}
	}
	if next == 0 {
		next = to
	}
	if missing {
		lost, err = p.truncated(none.at, to)
		return lost, next, err
	}
	return p.damage(none), next, nil
}

func (p *Past) damage(none *errNoFrame) *errs.CorruptionError {
	number := p.Geometry.Number(none.at)
	path := "wal/" + segment.Name(number)
	if _, err := p.FS.Stat(filepath.Join(p.Dir, segment.Name(number))); errors.Is(err, fs.ErrNotExist) {
		path = "wal/" + archiveName(number)
	}
	return &errs.CorruptionError{Path: path, Segment: number, Offset: p.Geometry.Offset(none.at), LSN: none.at, Err: none}
}

// gone says that a segment is neither there nor in the archive: not begun, or recycled.
func gone(err error) bool {
	return errors.Is(err, errNoSegment) || errors.Is(err, segment.ErrEnd)
}

// start reads the first frame of a segment, from its file or its copy. Damage in
// the one is told only if the other has it not either.
func (p *Past) start(number uint64) (segment.Start, segment.Header, error) {
	files := &pastFiles{p: p}
	defer files.close()
	w := walker{geo: p.Geometry, past: files.open}
	s, h, err := w.start(number)
	if err != nil && isNoFrame(err) && files.fallOver(p.Geometry.Start(number)) {
		s, h, err = w.start(number)
	}
	return s, h, err
}

// oldest is how far back the log below an LSN is kept without a hole: the first position behind a
// segment's start. whole says that nothing was before it, began where that segment goes on from: a
// reader that has seen everything before began has missed nothing.
func (p *Past) oldest(to LSN) (oldest, began LSN, whole bool, err error) {
	oldest, began = to, to
	if to == 0 {
		return 0, 0, true, nil
	}
	for n := p.Geometry.Number(to - 1); n > 0; n-- {
		s, h, err := p.start(n)
		if err != nil && !isNoFrame(err) {
			return 0, 0, false, err
		}
		if err != nil {
			break
		}
		oldest, began = h.End(), s.PrevEnd
		if s.PrevEnd == 0 {
			return oldest, p.Geometry.Start(n), true, nil
		}
	}
	return oldest, began, false, nil
}

// First is where the oldest segment begins that is kept in any state: reading from there reports
// every hole and all damage.
func (p *Past) First(to LSN) (LSN, error) {
	numbers, err := p.numbers()
	if err != nil {
		return 0, err
	}
	for _, n := range numbers {
		if p.Geometry.Start(n) >= to {
			break
		}
		_, _, err := p.start(n)
		switch {
		case gone(err) || errors.Is(err, errOtherLog):
		case err == nil || isNoFrame(err):
			return p.Geometry.Start(n), nil
		default:
			return 0, err
		}
	}
	return to, nil
}

// numbers are those of the segments that are kept, in files or in the archive, ascending.
func (p *Past) numbers() (numbers []uint64, err error) {
	for _, dir := range []string{p.Dir, filepath.Join(p.Dir, "archive")} {
		names, err := p.FS.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", dir, err)
		}
		for _, name := range names {
			if base, ok := strings.CutSuffix(name, ".zst"); ok {
				name = base + ".wal"
			}
			if n, ok := segment.ParseName(name); ok {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// At reads the entry that begins at an LSN, found along the chain of its segment, so that only real
// entries are found. errs.ErrNotFound when no entry begins there, errs.ErrTruncated when the log is
// no longer kept there.
func (p *Past) At(ctx context.Context, at, to LSN) (Entry, error) {
	if at >= to || at < p.Geometry.Size {
		return Entry{}, errs.ErrNotFound
	}
	var e Entry
	found := false
	err := p.within(ctx, at, to, func(h *segment.Header, payload []byte) bool {
		if h.LSN == at && h.Kind >= kindUser {
			e = entryOf(h, payload)
			found = true
		}
		return h.LSN < at
	})
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return e, err
}

// Chain is the chain hash where a frame ends; errs.ErrNotFound where none does.
func (p *Past) Chain(ctx context.Context, at LSN) (Mark, error) {
	if at < p.Geometry.Size {
		return Mark{}, errs.ErrNotFound
	}
	var m Mark
	err := p.within(ctx, at-1, at, func(h *segment.Header, _ []byte) bool {
		m = Mark{h.End(), h.Sum}
		return h.End() < at
	})
	if err == nil && m.LSN != at {
		err = errs.ErrNotFound
	}
	return m, err
}

// within visits the frames of the segment of a position from its start on.
func (p *Past) within(ctx context.Context, at, to LSN, visit func(*segment.Header, []byte) bool) error {
	number := p.Geometry.Number(at)
	_, h, err := p.start(number)
	if gone(err) {
		lost, err := p.truncated(at, to)
		return errors.Join(lost, err)
	}
	if err != nil {
		return err
	}
	if !visit(&h, nil) {
		return nil
	}
	var lost error
	err = p.walk(ctx, Mark{h.End(), h.Sum}, min(to, p.Geometry.End(number)), func(h *segment.Header, payload []byte, err error) bool {
		if gap := (*errs.GapError)(nil); errors.As(err, &gap) && at >= gap.To {
			return true
		}
		if err != nil {
			lost = err
			return false
		}
		return visit(h, payload)
	})
	if errors.Is(err, errStop) {
		err = lost
	}
	return err
}

// CopySegment writes the bytes of a segment up to a position into a file, from the segment or from
// its copy. They are not checked: read the written file to check them.
func (p *Past) CopySegment(ctx context.Context, number uint64, to LSN, out vfs.File) error {
	files := &pastFiles{p: p}
	defer files.close()
	f, err := files.open(number)
	if err != nil {
		return err
	}
	geo := p.Geometry
	b := make([]byte, walkChunk)
	for at := geo.Start(number); at < min(to, geo.End(number)); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := readFull(f, b[:min(uint64(len(b)), to-at, geo.End(number)-at)], geo.Offset(at))
		if err != nil || n == 0 {
			return err
		}
		if _, err := out.WriteAt(b[:n], geo.Offset(at)); err != nil {
			return err
		}
		at += uint64(n)
	}
	return nil
}
