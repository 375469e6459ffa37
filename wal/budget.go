package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/varve-db/varve/wal/past"
)

// The archive has a budget: a size in bytes and a maximum age. The flusher applies the budget when it releases
// segments of the log, so a changed budget takes effect with the next index; KeepBudget applies it when no
// segment is released. On a full disk the oldest copies are removed to make room for the newest. Removal by age
// is an hour or two late, so that a clock that is ahead for a moment removes nothing: see Aged. Segments that a
// copy of the log in another place lacks may stay longer: see sent.go.

// copyOf is a file in the archive: the copy of one segment of the log.
type copyOf struct {
	number uint64
	name   string
	size   int64
}

// archiveFiles returns the files in the archive, the oldest first, and their total size in bytes.
func (l *FileLog) archiveFiles() (list []copyOf, total int64, err error) {
	names, err := l.o.FS.ReadDir(l.o.wal("archive"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, l.ioError("reading", l.o.wal("archive"), err)
	}
	for _, name := range names {
		var n uint64
		if _, err := fmt.Sscanf(name, "%d.zst", &n); err != nil || "archive/"+name != past.CopyName(n) {
			continue
		}
		if info, err := l.o.FS.Stat(l.o.wal("archive/" + name)); err == nil {
			list = append(list, copyOf{n, "archive/" + name, info.Size})
			total += info.Size
		}
	}
	slices.SortFunc(list, func(a, b copyOf) int { return int(int64(a.number - b.number)) })
	return list, total, nil
}

// keepBudget removes copies from the archive: those whose entries are all older than the age limit, and the oldest
// ones until the archive is not larger than its budget. It keeps copies that a continuous copy of the log in another
// place still needs, as long as the archive exceeds its budget by at most Options.Unsent.
func (l *FileLog) keepBudget() error {
	bytes, age := l.o.Archive()
	list, total, err := l.archiveFiles()
	if err != nil {
		return err
	}
	cut := time.Time{}
	if now := l.o.Clock(); age > 0 && len(list) > 0 {
		cut = l.o.Aged(now, l.endedBefore(list, now.Add(-age)))
	}
	large, old := removal{why: "history_bytes"}, removal{why: "history_days"}
	defer large.tell(l)
	defer old.tell(l)
	unsent := l.unsent()
	for i, c := range list {
		r := &large
		if total <= bytes {
			if r = &old; cut.IsZero() || !l.endedBefore(list[i:], cut.Add(-age)) {
				break
			}
		}
		if c.number >= unsent && total-bytes <= l.o.Unsent() {
			break
		}
		if err := l.removeCopy(c); err != nil {
			return err
		}
		total -= c.size
		r.add(c)
	}
	return nil
}

// removal counts the copies that were removed from the archive because of one of the settings.
type removal struct {
	why         string // name of the setting
	copies      int
	bytes       int64
	first, last uint64
}

func (r *removal) add(c copyOf) {
	if r.copies == 0 {
		r.first = c.number
	}
	r.copies, r.bytes, r.last = r.copies+1, r.bytes+c.size, c.number
}

// tell logs how many copies were removed because of the setting, and emits an event. It does nothing if none were
// removed.
func (r *removal) tell(l *FileLog) {
	if r.copies == 0 {
		return
	}
	note := fmt.Sprintf("segments %d to %d, because of %s", r.first, r.last, r.why)
	if r.copies == 1 {
		note = fmt.Sprintf("segment %d, because of %s", r.first, r.why)
	}
	l.o.Logger.Info("old history was removed", "setting", r.why, "copies", r.copies, "bytes", r.bytes)
	l.o.Event(Event{Kind: EventArchiveOld, Path: "wal/archive", Bytes: r.bytes, Note: note})
}

// KeepBudget removes the copies that exceed the archive's limits of size and age, unless a backup is running. It does
// not release segments of the log.
func (a Archive) KeepBudget(held *Held) error {
	if err := held.proves(a.l); err != nil {
		return err
	}
	numbers, err := a.l.numbers()
	if err != nil || len(numbers) == 0 {
		return err
	}
	copied, locked, err := a.l.copied(held, numbers[0])
	if err != nil || copied {
		return err
	}
	if locked {
		defer a.l.unlock(roleHold)
	}
	return a.l.keepBudget()
}

func (l *FileLog) removeCopy(c copyOf) error {
	if err := l.letGo(l.o.wal(c.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.ioError("removing", l.o.wal(c.name), err)
	}
	return nil
}

// endedBefore reports whether every entry of the first copy in list was written before t. It decides this by the next
// segment that can be read, in the archive or in the log: every entry is older than t if that segment began before t.
// If no next segment can be read, endedBefore returns false. It compares the times in the frames. A clock that is
// behind never makes these times earlier. After a commit with a clock that is ahead, segments seem younger than they
// are and are kept longer.
func (l *FileLog) endedBefore(list []copyOf, t time.Time) bool {
	p := l.Past()
	for _, c := range list[1:] {
		if began, err := p.Began(c.number); err == nil {
			return began.Before(t)
		}
	}
	numbers, err := l.numbers()
	if err != nil {
		return false
	}
	for _, n := range numbers {
		if n <= list[len(list)-1].number {
			continue
		}
		if began, err := p.Began(n); err == nil {
			return began.Before(t)
		}
	}
	return false
}

// cutArchive frees space on a full disk, so that the segment with the given number can be copied into the archive. It
// first calls Options.MakeRoom. If that frees nothing, cutArchive removes the oldest copy in the archive, but only if
// the copy is of an older segment. It returns false if there is nothing to remove.
func (l *FileLog) cutArchive(number uint64) (bool, error) {
	if l.o.MakeRoom != nil && l.o.MakeRoom() {
		return true, nil
	}
	list, _, err := l.archiveFiles()
	if err != nil || len(list) == 0 || list[0].number >= number {
		return false, err
	}
	if err := l.removeCopy(list[0]); err != nil {
		return false, err
	}
	l.o.Event(Event{Kind: EventArchiveCut, Path: "wal/" + list[0].name, Bytes: list[0].size})
	return true, nil
}

// Kept returns the size of the archive in bytes, and since, the time at which the oldest segment in the archive or the
// log began. since is zero if this time cannot be read. If the segment records a time later than the clock, since is
// the clock reading in the first entry of the segment. Kept reads file names and sizes, and usually one start frame.
func (a Archive) Kept() (bytes int64, since time.Time) {
	list, bytes, err := a.l.archiveFiles()
	if err != nil {
		return 0, since
	}
	numbers, err := a.l.numbers()
	if err != nil {
		return bytes, since
	}
	for _, c := range list {
		numbers = append(numbers, c.number)
	}
	slices.Sort(numbers)
	p := a.l.Past()
	for _, n := range slices.Compact(numbers) {
		if since, err = p.Began(n); err == nil {
			if since.After(a.l.o.Clock()) {
				since = p.FirstReading(n, since)
			}
			return bytes, since
		}
	}
	return bytes, time.Time{}
}
