package past

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Log reads a log as far back as it is kept: the segments, and the copies of older segments in archive/. It takes no
// lock and keeps no file open between two calls. So it can also be used for a read-only handle and for a folder that no
// process writes to, such as a backup.
//
// If a segment is recycled while it is read, Log continues in the copy, which is durable before the recycling begins.
// If neither the file nor the copy exists, the log has a hole. A hole is reported as a *errs.TruncatedError and is
// never treated as the end of the log.
type Log struct {
	FS       vfs.FS
	Dir      string // folder that contains the segments and archive/
	Geometry segment.Geometry
}

// path returns the path of a file in the folder of the log.
func (p *Log) path(name string) string { return filepath.Join(p.Dir, name) }

// readError returns err, an error of the system, with the operation and the path in front. For a missing permission or
// too many open files, the result also matches errs.ErrPermission or errs.ErrTooManyFiles. readError returns the error
// of a context unchanged.
func readError(doing, path string, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case vfs.IsUnopened(err) && !errors.Is(err, errs.ErrTooManyFiles):
		return fmt.Errorf("%s %s: %w: %w", doing, path, errs.ErrTooManyFiles, err)
	}
	return vfs.Failed(doing, path, err)
}

// Entries yields the entries in [from, to), from the segments and the archive. A frame must begin at from, or the
// frames of a segment must end there. If from has a chain hash, the first frame must follow this hash; otherwise only
// its own checksum is verified. If from is 0, Entries begins at the lowest position after which the log has no hole.
// After an error that means damage or a hole, the next iteration yields the entries after it.
func (p *Log) Entries(ctx context.Context, from Mark, to LSN) iter.Seq2[Entry, error] {
	return p.EntriesOf(ctx, from, to, nil)
}

// EntriesOf is like Entries, but yields only the entries for whose keys want returns true. If want is nil, it yields
// all entries.
func (p *Log) EntriesOf(ctx context.Context, from Mark, to LSN, want func(key []byte) bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if from.LSN == 0 {
			oldest, _, _, err := p.Oldest(to)
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
			case h.Kind < KindUser, want != nil && !want(payload[:h.KeyLen]):
				return true
			}
			return yield(EntryOf(h, payload), nil)
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(Entry{}, err)
		}
	}
}

// After returns the mark at the end of a batch: the first end of a batch at which n or more entries have been read
// since from. If [from, to) has fewer entries, After returns the mark to. Entries that cannot be read do not count.
func (p *Log) After(ctx context.Context, from, to Mark, n int) (mark Mark, err error) {
	err = p.walk(ctx, from, to.LSN, func(h *segment.Header, payload []byte, err error) bool {
		if err != nil {
			return true // a reader of the entries finds the same
		}
		if h.Kind >= KindUser {
			n--
		}
		if n <= 0 && !h.More() {
			mark = Mark{LSN: h.End(), Sum: h.Follow(payload)}
			return false
		}
		return true
	})
	if errors.Is(err, errStop) {
		return mark, nil
	}
	return to, err
}

// Erased reports whether a purge has erased a frame in the part [from, to) of the log.
func (p *Log) Erased(ctx context.Context, from Mark, to LSN) (found bool, err error) {
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

// ErasedAt returns, out of the given positions, those whose frame a purge has erased. It reads only the log below end,
// and the segment of each position only once. A position that cannot be read does not count as erased.
func (p *Log) ErasedAt(ctx context.Context, end LSN, positions ...LSN) (map[LSN]bool, error) {
	erased := map[LSN]bool{}
	positions = slices.Compact(slices.Sorted(slices.Values(positions)))
	for len(positions) > 0 {
		number := p.Geometry.Number(positions[0])
		n := 1
		for n < len(positions) && p.Geometry.Number(positions[n]) == number {
			n++
		}
		asked := positions[:n]
		if positions = positions[n:]; asked[0] >= end || asked[0] < p.Geometry.Size {
			continue
		}
		_ = p.within(ctx, asked[n-1], end, func(h *segment.Header, _ []byte) bool {
			if h.Kind == segment.KindErased {
				if _, found := slices.BinarySearch(asked, h.LSN); found {
					erased[h.LSN] = true
				}
			}
			return h.LSN < asked[n-1]
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return erased, nil
}

var errStop = errors.New("the caller has stopped the iteration")

// walk calls visit for each frame in [from, to). For each damaged or missing part, it calls visit with an error. If
// visit returns false, walk stops and returns errStop.
func (p *Log) walk(ctx context.Context, from Mark, to LSN, visit func(*segment.Header, []byte, error) bool) error {
	return p.walkRaw(ctx, from, to, func(h *segment.Header, payload, _ []byte, err error) bool {
		return visit(h, payload, err)
	})
}

// walkRaw is like walk, and also passes the undecoded bytes of each frame.
func (p *Log) walkRaw(ctx context.Context, from Mark, to LSN,
	visit func(h *segment.Header, payload, raw []byte, err error) bool) (err error) {
	files := &Files{p: p}
	defer files.Close()
	w := NewWalker(p.Geometry, files.Open, from)
	var gap *errs.GapError // the gap frames just passed: nothing is left there
	defer func() {
		if gap != nil && err == nil && !visit(nil, nil, nil, gap) {
			err = errStop
		}
	}()
	var first *NoFrameError // what was found before the copies were read
	var anew LSN            // the position at which reading was restarted with the files
	for n := 0; w.At.LSN < to; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		h, payload, err := p.next(&w, to)
		var none *NoFrameError
		if errors.As(err, &none) {
			if first == nil {
				first = none
			}
			if files.FallOver(w.At.LSN) {
				w.Forget()
				continue
			}
			if anew != w.At.LSN {
				// A copy that did not exist before may exist now, and the file that was tried next may have
				// been recycled.
				anew, files.fell, w.have = w.At.LSN, nil, 0
				continue
			}
			lost, next, err := p.hole(first, to)
			if err != nil {
				return err
			}
			if lost != nil && !visit(nil, nil, nil, lost) {
				return errStop
			}
			if next >= to {
				return nil
			}
			w.At, w.Linked, w.have, first = Mark{LSN: next}, false, 0, nil
			continue
		}
		if err != nil {
			return err
		}
		first = nil
		if gap != nil && h.Kind != segment.KindGap {
			lost := gap
			if gap = nil; !visit(nil, nil, nil, lost) {
				return errStop
			}
		}
		if h.End() > to {
			return nil // a position inside a frame is not part of the requested range
		}
		if h.Kind == segment.KindGap {
			if gap == nil {
				gap = &errs.GapError{From: h.LSN}
			}
			gap.To = h.End()
			continue
		}
		if !visit(&h, payload, w.raw, nil) {
			return errStop
		}
	}
	return nil
}

// next is like Walker.Next. If the Walker is at the beginning of a segment and does not know the chain hash there,
// next reads the start frame of this segment.
func (p *Log) next(w *Walker, to LSN) (segment.Header, []byte, error) {
	number := p.Geometry.Number(w.At.LSN)
	if w.Linked || p.Geometry.Offset(w.At.LSN) != 0 {
		return w.Next(to)
	}
	_, h, err := w.Start(number)
	if err != nil && IsNoFrame(err) {
		err = &NoFrameError{At: w.At.LSN, Here: segment.ErrEnd, Next: err}
	}
	if err == nil {
		w.At, w.Linked = Mark{h.End(), h.Sum}, true
	}
	return h, nil, err
}

// hole determines why the position none.At, below end, has no frame. next is the position at which reading can
// continue. lost is the error for a part that is missing or damaged. lost is nil if nothing is missing, because a
// repair has begun a new log there.
func (p *Log) hole(none *NoFrameError, end LSN) (lost error, next LSN, err error) {
	geo := p.Geometry
	number := geo.Number(none.At)
	if geo.Offset(none.At) == 0 {
		number-- // the frames of the previous segment filled it
	}
	_, _, here := p.Start(number)
	_, _, after := p.Start(number + 1)
	for _, err := range []error{here, after} {
		if err != nil && !IsNoFrame(err) {
			return nil, 0, err // a read error proves neither damage nor loss
		}
	}
	ended := errors.Is(none.Here, segment.ErrEnd)
	missing := isMissingSegment(here) || ended && isMissingSegment(after) && end > geo.Start(number+1)
	behind, err := p.numbers()
	if err != nil {
		return nil, 0, err
	}
	for _, n := range behind { // not by the value of end, which may be a mark that was made up
		if n <= number || n > geo.Number(end-1) {
			continue
		}
		if s, h, err := p.Start(n); err == nil {
			if next = h.End(); s.PrevEnd == 0 && ended && n <= number+2+Spares {
				return nil, next, nil // a repair has begun a new log after the end of this one
			}
			break
		} else if !IsNoFrame(err) {
			return nil, 0, err
		}
	}
	if next == 0 {
		next = end
	}
	if missing {
		lost, err = p.truncated(none.At, end)
		return lost, next, err
	}
	return p.damage(none), next, nil
}

func (p *Log) damage(none *NoFrameError) *errs.CorruptionError {
	number := p.Geometry.Number(none.At)
	path := "wal/" + segment.Name(number)
	if _, err := p.FS.Stat(filepath.Join(p.Dir, segment.Name(number))); errors.Is(err, fs.ErrNotExist) {
		path = "wal/" + CopyName(number)
	}
	return &errs.CorruptionError{Path: path, Segment: number, Offset: p.Geometry.Offset(none.At), LSN: none.At, Err: none}
}

// isMissingSegment reports whether err means that a segment is neither in wal/ nor in the archive: the segment was
// never begun, or was recycled without a copy.
func isMissingSegment(err error) bool {
	return errors.Is(err, ErrNoSegment) || errors.Is(err, segment.ErrEnd)
}

// Start returns the first frame of a segment from the file or the archived copy. It returns an error only if it can
// read neither.
func (p *Log) Start(number uint64) (segment.Start, segment.Header, error) {
	files := &Files{p: p}
	defer files.Close()
	w := NewWalker(p.Geometry, files.Open, Mark{})
	s, h, err := w.Start(number)
	if err != nil && IsNoFrame(err) && files.FallOver(p.Geometry.Start(number)) {
		s, h, err = w.Start(number)
	}
	return s, h, err
}

// Oldest returns where the newest part of the log below end begins that is kept without a hole. oldest is the position
// after the start frame of the first segment of this part. whole reports whether a log begins with this segment. began
// is the end of the segment before it: a reader that has read everything below began has missed nothing.
func (p *Log) Oldest(end LSN) (oldest, began LSN, whole bool, err error) {
	oldest, began = end, end
	if end == 0 {
		return 0, 0, true, nil
	}
	for n := p.Geometry.Number(end - 1); n > 0; n-- {
		s, h, err := p.Start(n)
		if err != nil && !IsNoFrame(err) {
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

// First returns the position where the oldest kept segment begins, even if the segment is damaged, or end if no
// segment below end is kept. A reader that begins there finds every hole and all damage.
func (p *Log) First(end LSN) (LSN, error) {
	numbers, err := p.numbers()
	if err != nil {
		return 0, err
	}
	for _, n := range numbers {
		if p.Geometry.Start(n) >= end {
			break
		}
		_, _, err := p.Start(n)
		switch {
		case isMissingSegment(err) || errors.Is(err, errOtherLog):
		case err == nil || IsNoFrame(err):
			return p.Geometry.Start(n), nil
		default:
			return 0, err
		}
	}
	return end, nil
}

// numbers returns, in ascending order, the numbers of the segments of which a file or an archived copy is kept.
func (p *Log) numbers() (numbers []uint64, err error) {
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

// At returns the entry at position pos of the log below end. It reads the frames of the segment in order up to
// pos, so it does not return bytes that only look like an entry. If no entry below end begins at pos, the error
// matches errs.ErrNotFound. If this part of the log is no longer kept, the error matches errs.ErrTruncated.
func (p *Log) At(ctx context.Context, pos, end LSN) (Entry, error) {
	if pos >= end || pos < p.Geometry.Size {
		return Entry{}, errs.ErrNotFound
	}
	var e Entry
	found := false
	err := p.within(ctx, pos, end, func(h *segment.Header, payload []byte) bool {
		if h.LSN == pos && h.Kind >= KindUser {
			e = EntryOf(h, payload)
			found = true
		}
		return h.LSN < pos
	})
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return e, err
}

// Chain returns the mark with the chain hash at position pos. If no frame ends at pos, the error matches
// errs.ErrNotFound.
func (p *Log) Chain(ctx context.Context, pos LSN) (Mark, error) {
	if pos < p.Geometry.Size {
		return Mark{}, errs.ErrNotFound
	}
	var m Mark
	// Up to the end of the segment: a frame that reaches beyond pos is read whole, and is no damage.
	err := p.within(ctx, pos-1, p.Geometry.End(p.Geometry.Number(pos-1)), func(h *segment.Header, _ []byte) bool {
		m = Mark{h.End(), h.Sum}
		return h.End() < pos
	})
	if err == nil && m.LSN != pos {
		err = errs.ErrNotFound
	}
	return m, err
}

// within calls visit for the frames of the segment that contains position pos, from the beginning of the segment
// up to position to, until visit returns false.
func (p *Log) within(ctx context.Context, pos, to LSN, visit func(*segment.Header, []byte) bool) error {
	number := p.Geometry.Number(pos)
	_, h, err := p.Start(number)
	if isMissingSegment(err) {
		lost, err := p.truncated(pos, to)
		return errors.Join(lost, err)
	}
	if err != nil {
		return err
	}
	if !visit(&h, nil) {
		return nil
	}
	var lost error
	err = p.walk(ctx, Mark{h.End(), h.Sum}, min(to, p.Geometry.End(number)),
		func(h *segment.Header, payload []byte, err error) bool {
			if gap := (*errs.GapError)(nil); errors.As(err, &gap) && pos >= gap.To {
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

// CopySegment copies the bytes of a segment into out, up to position end or up to the end of the segment if that
// comes first. It reads the segment or its archived copy. It does not check the bytes: to check them, read what
// was written.
func (p *Log) CopySegment(ctx context.Context, number uint64, end LSN, out io.WriterAt) error {
	files := &Files{p: p}
	defer files.Close()
	f, err := files.Open(number)
	if err != nil {
		return err
	}
	geo := p.Geometry
	b := make([]byte, Chunk)
	for at := geo.Start(number); at < min(end, geo.End(number)); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := ReadFull(f, b[:min(uint64(len(b)), end-at, geo.End(number)-at)], geo.Offset(at))
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

// Spares is the number of segments that are kept ready after the segment in which the log ends. The first one is
// created before a segment is released (see prepareNext). With the second one, a store in use can always recycle
// segments and need not create files.
const Spares = 2
