package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// Damage in a backup does not prevent the restore of the rest. A document is restored only if a
// hash proves that its bytes are those that were backed up: the hash in files.sha256, or in an
// entry of the log.

// missing is the beginning of the description (Damage.Done) of content that could not be restored from any source.
const missing = "missing"

// lost is a file of a backup that is damaged, or for which no hash is known that would verify it.
type lost struct {
	listedFile
	known bool // the hash is from the list; otherwise it was computed from the file
	why   string
}

// noteDamage adds a damaged file to the report. reason describes the damage. done describes the source of the
// restored content; it begins with the word missing if content is missing.
func (r *restore) noteDamage(name, reason, done string) {
	d := repair.Damage{Path: name, Why: reason, Done: done, Missing: strings.HasPrefix(done, missing)}
	if k := kind.At(name); k != nil {
		d.ID, _ = k.ID(k.Below(name))
	}
	r.report.Damage = append(r.report.Damage, d)
}

// tolerated reports whether err is damage after which a restore continues.
func (r *restore) tolerated(err error) bool {
	return !r.s.Strict && errors.Is(err, errs.ErrCorrupt)
}

// flippedMost is the maximum number of bytes that unflip hashes.
const flippedMost = 1 << 30

// unflip searches the single bit of b that must be flipped so that the function right returns true, and leaves that
// bit flipped. It returns false, and leaves b unchanged, if no such bit exists, if the search would hash more than
// flippedMost bytes, or if ctx has ended.
func unflip(ctx context.Context, b []byte, right func([]byte) bool) bool {
	if len(b)*len(b)*8 > flippedMost {
		return false
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if right(b) {
				return true
			}
			b[i] ^= 1 << bit
		}
		if i%256 == 0 && ctx.Err() != nil {
			return false
		}
	}
	return false
}

// list returns the files that the backup's list names. If the list is damaged, it still returns the readable lines, to
// verify their files.
func (r *restore) list(ctx context.Context) (func(yield func(listedFile, error) bool), error) {
	all := listed(r.from, r.s.Backup, &r.info)
	for _, err := range all {
		if err == nil {
			err = ctx.Err()
		}
		if r.tolerated(err) {
			why := err
			files, err := r.relist(ctx)
			if err == nil {
				r.noteDamage(backupList, reason(why),
					"the files were verified with the readable lines of the list, and with the log")
			}
			return func(yield func(listedFile, error) bool) {
				for _, f := range files {
					if !yield(f, nil) {
						return
					}
				}
			}, err
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// reason returns the text of an error without the name of the file.
func reason(err error) string {
	if c := (*errs.CorruptionError)(nil); errors.As(err, &c) && c.Err != nil {
		return c.Err.Error()
	}
	return err.Error()
}

// relist builds the list from the files that exist and the readable parts of a damaged list.
func (r *restore) relist(ctx context.Context) (files []listedFile, err error) {
	raw, err := vfs.ReadText(r.from, filepath.Join(r.s.Backup, backupList), listMost)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !notAFile(err) {
		return nil, err
	}
	hashes, lines := remains(raw)
	var order bytes.Buffer // the rebuilt list, which equals the original list if all files exist and are sound
	var doubted []listedFile
	seen := map[string]bool{}
	for _, k := range kind.Filed() {
		folder := k.Folder
		dir, err := places.Enter(r.from, r.s.Backup, folder)
		var names []string
		if err == nil {
			names, err = r.from.ReadDir(dir)
			if k.Tree() {
				names, err = k.In(docfile.Layout{FS: r.from, Root: r.s.Backup}).Names()
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !notAFile(err) {
			return nil, err
		}
		slices.SortFunc(names, func(a, b string) int {
			x, _ := k.ID(a)
			y, _ := k.ID(b)
			return strings.Compare(x, y)
		})
		for _, base := range names {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			name := folder + "/" + base
			if places.Local(name) != nil {
				continue
			}
			seen[name] = true
			b, err := vfs.ReadText(r.from, filepath.Join(dir, filepath.FromSlash(base)), places.DocumentMost)
			if err != nil {
				continue // if it is listed, it is read again later
			}
			f := listedFile{name: name, hash: sha256.Sum256(b)}
			sum := hex.EncodeToString(f.hash[:])
			l, named := lines[name]
			f.older = named && l.older
			fmt.Fprintf(&order, "%s %c%s\n", sum, map[bool]byte{false: ' ', true: olderMark}[f.older], name)
			switch {
			case hashes[sum] || named && nearlyEqual(l.sum, sum):
				files = append(files, f)
				delete(hashes, sum)
				if named && l.sum != sum {
					delete(hashes, l.sum)
				}
				delete(lines, name)
			case named && l.valid():
				hex.Decode(f.hash[:], []byte(l.sum)) // it is read again later, and found to differ
				files = append(files, f)
				delete(lines, name)
			default:
				doubted = append(doubted, f)
			}
		}
	}
	if whole := sha256.Sum256(order.Bytes()); hex.EncodeToString(whole[:]) == r.info.List {
		return append(files, doubted...), nil
	}
	for _, f := range doubted {
		r.lose(f, false, backupList+" has no hash to verify the file")
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		l := lines[name]
		if !l.valid() || !hashes[l.sum] || !isListed(name) {
			continue // a file of another name has these bytes
		}
		f := listedFile{name: name, older: l.older}
		hex.Decode(f.hash[:], []byte(l.sum))
		files = append(files, f)
	}
	return files, nil
}

const (
	listMost = 1 << 30
	hexes    = 2 * sha256.Size
)

// oldLine is the readable part of a line in a damaged files.sha256.
type oldLine struct {
	sum   string
	older bool
}

func (l *oldLine) valid() bool {
	b, err := hex.DecodeString(l.sum)
	return err == nil && len(b) == sha256.Size
}

// nearlyEqual reports whether the hash a equals b except for a few damaged digits. Two different hashes are never
// that similar.
func nearlyEqual(a, b string) bool {
	same := 0
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			same++
		}
	}
	return same >= hexes-4
}

// remains returns the readable parts of a damaged list: all hashes in it, and its lines by file
// name.
func remains(raw []byte) (hashes map[string]bool, lines map[string]oldLine) {
	hashes, lines = map[string]bool{}, map[string]oldLine{}
	isHex := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
	for i := 0; i < len(raw); i++ {
		from := i
		for i < len(raw) && isHex(raw[i]) {
			i++
		}
		if i-from >= hexes {
			hashes[string(raw[from:from+hexes])] = true
			hashes[string(raw[i-hexes:i])] = true
		}
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > hexes+2 {
			lines[line[hexes+2:]] = oldLine{line[:hexes], line[hexes+1] == olderMark}
		}
	}
	return hashes, lines
}

// lose records a file that must be restored from a source other than its file in the backup. known reports whether
// f.hash is from the list of the backup, and reason is the explanation for the report.
func (r *restore) lose(f listedFile, known bool, reason string) {
	if r.lost == nil {
		r.lost = map[string]*lost{}
	}
	r.lost[f.name] = &lost{listedFile: f, known: known, why: reason}
}

// spoilt handles a file of the backup that does not match its hash: it corrects a single wrong bit, or records the
// file as lost.
func (r *restore) spoilt(ctx context.Context, f listedFile, cause error) error {
	at, err := places.Enter(r.from, r.s.Backup, f.name)
	if err == nil {
		var b []byte
		if b, err = vfs.ReadText(r.from, at, places.DocumentMost); err == nil && unflip(ctx, b,
			func(b []byte) bool { return sha256.Sum256(b) == f.hash }) {
			r.noteDamage(f.name, reason(cause), "healed: one bit was corrected, the hash matches")
			return r.deliver(f, b, r.mtime(r.from, at), 0, 0)
		}
	}
	r.lose(f, true, reason(cause))
	return ctx.Err()
}

// mtime returns the modification time of a file; zero if it cannot be read.
func (r *restore) mtime(fsys vfs.FS, name string) time.Time {
	info, err := fsys.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.Mtime
}

// deliver writes a document with verified bytes to the restored store, unless the document was purged. version is the
// log position of the document's version, and number is the number of its vector; both are 0 if the document is not
// from a log.
func (r *restore) deliver(f listedFile, data []byte, mtime time.Time, version uint64, number int64) error {
	if path.Dir(f.name) == places.Working {
		return r.scope(f.name, data)
	}
	if r.hidden(f.name, data) {
		r.report.Purged++
		return nil
	}
	r.note(f.name, f.older, version, number)
	r.writers.keep(f.name)
	return r.put(f.name, data, mtime)
}

// heal restores lost documents from the backup's log, then from the log, the archive and the files of the store that
// was backed up. It reports the documents of which none of these sources has a copy.
func (r *restore) heal(ctx context.Context) error {
	if len(r.lost) == 0 {
		return nil
	}
	own := r.backupLog()
	first, err := own.First(r.info.End.LSN)
	if err == nil {
		err = r.healFrom(ctx, own, first, r.info.End.LSN, "healed from the backup's log")
	}
	if l := r.s.Living; err == nil && l != nil {
		if first, err = l.First(r.s.To); err == nil {
			err = r.healFrom(ctx, l, first, r.s.To, "healed from the log of the store")
		}
		for _, name := range slices.Sorted(maps.Keys(r.lost)) {
			if err != nil {
				break
			}
			f := r.lost[name]
			at, eerr := places.Enter(l.FS, filepath.Dir(l.Dir), name)
			if eerr != nil {
				continue
			}
			b, rerr := vfs.ReadText(l.FS, at, places.DocumentMost)
			if rerr == nil && sha256.Sum256(b) == f.hash {
				err = r.healed(f, b, r.mtime(l.FS, at), 0, 0, "healed from the store's file")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.lost)) {
		r.noteDamage(name, r.lost[name].why, missing)
	}
	return err
}

func (r *restore) healed(f *lost, data []byte, mtime time.Time, version uint64, number int64, done string) error {
	r.noteDamage(f.name, f.why, done)
	delete(r.lost, f.name)
	return r.deliver(f.listedFile, data, mtime, version, number)
}

// healFrom restores lost documents from the entries of a log in the range [from, to). done is the text for the
// report; it names the log.
func (r *restore) healFrom(ctx context.Context, past *past.Log, from, to wal.LSN, done string) error {
	var codec record.Codec
	codec.Bound(past.Geometry.Limit())
	for e, err := range past.Entries(ctx, wal.Mark{LSN: from}, to) {
		if len(r.lost) == 0 || ctx.Err() != nil {
			break
		}
		if err != nil {
			continue // later entries may have the document
		}
		name, ok := backupFile(e.Key)
		f := r.lost[name]
		if !ok || f == nil || e.Delete {
			continue
		}
		line, _, err := state.LineIn(&e)
		if err != nil {
			continue
		}
		doc, _, err := state.DocumentIn(&codec, &e, places.DocumentMost)
		if err != nil || sha256.Sum256(doc) != f.hash {
			continue
		}
		if err := r.healed(f, doc, e.Time, e.LSN, line.VectorNumber(), done); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// backupLog returns the log in the backup. If the log was repaired, backupLog returns the log with the repairs.
func (r *restore) backupLog() *past.Log {
	if r.mended != nil {
		return r.mended
	}
	return &past.Log{FS: r.from, Dir: filepath.Join(r.s.Backup, backupWAL), Geometry: geometryOf(&r.info)}
}

// nothingLeft returns an error if no document was restored and damaged content is missing.
func (r *restore) nothingLeft() error {
	if r.report.Memories+r.report.Assemblies+r.report.Scopes+sum(r.report.Others) > 0 {
		return nil
	}
	for _, d := range r.report.Damage {
		if d.Missing {
			return fmt.Errorf("nothing in %s can be restored: %w", r.s.Backup, damagedBackup(d.Path, errors.New(d.Why)))
		}
	}
	return nil
}
