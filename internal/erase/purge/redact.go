package purge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/erase/trace"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// Redaction is the result of redacting a version.
type Redaction struct {
	ID      string
	Version uint64
	Already bool // the version was redacted before
	// Other versions of the document with the same text, or the same bytes, which were not redacted.
	Equal []uint64
}

// presentError is the error for an attempt to redact the current version of a document. It matches ErrConflict.
type presentError struct {
	kind, id string
	version  uint64
}

func (e *presentError) Error() string {
	return fmt.Sprintf("version %d is the current version of %s %s: write a newer version or delete the document, "+
		"then redact this version", e.version, e.kind, human.Quote(e.id))
}

func (e *presentError) Unwrap() error { return errs.ErrConflict }

// text is a hash that identifies the text of a version.
type text [sha256.Size]byte

// textOf returns a hash that identifies the text of a version. Versions that differ only in their times have the same
// hash. If the version has no text, the hash is that of the version's bytes.
func textOf(k *engine.Kind, v *history.Version) text {
	if c, err := k.Parse(v.Document, v.ID); err == nil {
		if s := strings.TrimSpace(engine.TextOf(&c, v.Document)); s != "" {
			return sha256.Sum256([]byte("text " + s))
		}
	}
	return v.ContentHash
}

// Redact commits that a version of a document is redacted. From then on the history shows the version without its
// content. Overwrite later overwrites the bytes of the version.
func (p *Purger) Redact(ctx context.Context, k *engine.Kind, id string, version uint64) (*Redaction, error) {
	if err := p.engine.CatchUp(ctx); err != nil {
		return nil, err
	}
	r := &Redaction{ID: id, Version: version}
	var of *history.Version
	var next uint64
	var all []history.Version
	var unread error
	texts := map[uint64]text{} // by version
	p.history.Each(ctx, k, id, func(v history.Version, err error) bool {
		if err != nil {
			unread = errors.Join(unread, err)
			return true
		}
		if !v.Deleted && !v.Redacted {
			texts[v.LSN] = textOf(k, &v)
		}
		v.Document = nil
		if of != nil && next == 0 {
			next = v.LSN
		}
		if all = append(all, v); v.LSN == version {
			of = &all[len(all)-1]
		}
		return true
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if of == nil {
		missing := error(&errs.NoVersionError{Kind: k.Noun, ID: id, Version: version})
		if len(all) > 0 {
			missing = &errs.NoVersionError{Kind: k.Noun, ID: id, Version: version, Oldest: all[0].LSN,
				Newest: all[len(all)-1].LSN}
		}
		return nil, errors.Join(missing, unread)
	}
	for i := range all {
		if v := &all[i]; v.LSN == version {
			of = v
		}
	}
	if of.Redacted {
		r.Already = true
		return r, nil
	}
	if of.Deleted {
		return nil, fmt.Errorf("%w: version %d of %s %s is a deletion, which has no content", errs.ErrInvalid, version,
			k.Noun, human.Quote(id))
	}
	current, err := p.engine.State().Current(k.Key(id))
	if err != nil {
		return nil, err
	}
	if current == version {
		return nil, &presentError{k.Noun, id, version}
	}
	for i := range all {
		if v := &all[i]; v.LSN != version && !v.Deleted && !v.Redacted && texts[v.LSN] == texts[version] {
			r.Equal = append(r.Equal, v.LSN)
		}
	}
	if err := p.engine.Log().Raise(ctx, wal.FeaturePurges); err != nil {
		return nil, err
	}
	log := p.engine.Log()
	return r, p.engine.CommitPurge(ctx, []purgefile.Row{{Key: purgefile.KeyOf(log.UUID(), k.Key(id)), Version: version,
		Redacted: true, Time: of.Time.UnixMicro(), Writer: of.Writer.Number, Next: next}})
}

// Overwrite overwrites, in one pass, the bytes of all redacted versions that are not overwritten yet. It searches the
// log and the archive, replaced files, the index, the vectors, the index of words, and copies of these in quarantine.
// It returns a report like that of a purge, or nil if there is nothing to overwrite.
func (p *Purger) Overwrite(ctx context.Context) (*Report, error) {
	rows, err := p.engine.ToOverwrite()
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := &Report{Device: p.overwrites()}
	if err := p.engine.Log().Purges().Begin(ctx); err != nil {
		return r, err
	}
	cut := flush.PurgeWasCut(p.flusher) // before this purge creates its own folder
	failed := false                     // and not overwritten
	ended := false
	end := func() {
		if ended {
			return
		}
		ended = true
		if failed {
			p.engine.Log().Purges().Fail()
		}
		p.engine.Log().Purges().End()
	}
	defer end()
	err = p.preparePurge(ctx, r)
	var traces *trace.Set
	var texts *purgefile.Texts
	if err == nil {
		traces, texts, err = p.redacted(ctx, rows)
	}
	if err != nil {
		if !cut && !p.engine.Log().Purges().Failed() {
			p.leaveFolder()
		}
		return r, err
	}
	held, err := p.engine.Log().LockFlush(ctx)
	if err != nil {
		return r, err
	}
	defer held.Unlock()
	defer end()
	failed = true
	err = p.purgeLocked(ctx, held, p.engine.Kinds().Memories, nil, 0, traces, texts, cut, r)
	for _, k := range p.engine.Kinds().All {
		if err == nil && k != p.engine.Kinds().Memories {
			err = p.purgeStrangers(ctx, k, traces, r)
		}
	}
	if err == nil {
		err = p.engine.Log().Purges().Done()
	}
	if err != nil {
		return r, err
	}
	failed = false
	if len(r.Left) > 0 {
		return r, errors.Join(r.Left...)
	}
	done := map[uint64]bool{}
	for _, row := range rows {
		done[row.Version] = true
	}
	endings, err := p.engine.Log().Past().Endings()
	if err != nil {
		return r, err
	}
	position := wal.LSN(0) // as Purges.Done has recorded it
	if n := len(endings); n > 0 {
		position = endings[n-1].Next
	}
	return r, p.engine.FinishRedactions(done, position)
}

// redacted returns a trace.Set that finds the redacted versions, and the hashes of their texts. The store keeps these
// hashes, to recognise a redacted text that is stored again later.
func (p *Purger) redacted(ctx context.Context, rows []purgefile.Row) (*trace.Set, *purgefile.Texts, error) {
	log := p.engine.Log()
	of := make(map[segment.LSN]purgefile.Key, len(rows))
	for _, row := range rows {
		of[row.Version] = row.Key
	}
	traces := trace.Redacted(func(at segment.LSN, key string) bool {
		digest, is := of[at]
		return is && digest == purgefile.KeyOf(log.UUID(), key)
	})
	traces.Log = log.Past().Geometry
	texts, err := p.engine.NewTexts()
	if err != nil {
		return nil, nil, err
	}
	first, err := log.Past().First(log.Durable())
	if err != nil {
		return traces, texts, ctx.Err() // what cannot be read is overwritten as well
	}
	wanted := map[purgefile.Key]bool{}
	for _, row := range rows {
		wanted[row.Key] = true
	}
	is := func(key []byte) bool {
		if len(key) > 2 && key[0] == record.Kept {
			key = key[1:]
		}
		return len(key) > 1 && wanted[purgefile.KeyOf(log.UUID(), string(key))]
	}
	for e, err := range log.Past().EntriesOf(ctx, wal.Mark{LSN: first}, log.Durable(), is) {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil || e.Delete || !traces.Entry(e.LSN, e.Key, e.Value) {
			continue
		}
		key := e.Key
		var doc []byte
		if key[0] == record.Kept {
			key = key[1:]
			_, doc, err = state.KeptDocument(p.engine.Codec(), &e, places.StoredMost)
		} else {
			doc, _, err = state.DocumentIn(p.engine.Codec(), &e, places.StoredMost)
		}
		k := p.engine.Kinds().Of(key)
		if err != nil || k == nil {
			continue
		}
		traces.LearnVersion(k.Kind, key[1:], doc)
		if c, err := k.Parse(doc, key[1:]); err == nil {
			p.redactedText(ctx, k, key[1:], engine.TextOf(&c, doc), texts)
		}
	}
	return traces, texts, ctx.Err()
}

// redactedText adds the hash of text, a redacted text of a document, to texts. It adds nothing if the document still
// has this text, or if text is "".
func (p *Purger) redactedText(ctx context.Context, k *engine.Kind, id, text string, texts *purgefile.Texts) {
	if v, err := p.engine.Find(ctx, k, id, true); err == nil {
		if c, err := k.Parse(v.Doc, id); err == nil && engine.TextOf(&c, v.Doc) == text {
			return
		}
	}
	if text != "" {
		texts.Add(texts.Sum(k.Key(id), text))
	}
}

// overwriteAfter is the time for which redactions are collected before their bytes are overwritten in the background.
const overwriteAfter = time.Minute

// overwritePause is the maximum time between two attempts to overwrite redacted versions. Each failed attempt doubles
// the time, from overwriteAfter up to this maximum.
const overwritePause = time.Hour

// OverwriteDue overwrites redacted versions in the background, once the oldest redaction is a minute old.
func (p *Purger) OverwriteDue(ctx context.Context) {
	log := p.engine.Log()
	if log.Features()&wal.FeaturePurges == 0 || log.Damage() != nil || log.Purges().Running() {
		return
	}
	rows, err := p.engine.ToOverwrite()
	now := p.engine.Env().Clock()
	if err != nil || len(rows) == 0 {
		return
	}
	oldest := rows[0].At
	for _, row := range rows {
		oldest = min(oldest, row.At)
	}
	if age := now.Sub(time.UnixMicro(oldest)); age.Abs() < overwriteAfter {
		return
	}
	pause := time.Duration(p.pause.Load())
	last := p.tried.Load()
	if since := time.Duration(now.UnixNano() - last); last != 0 && 0 <= since && since < max(pause, overwriteAfter) {
		return
	}
	p.tried.Store(now.UnixNano())
	_, err = p.Overwrite(ctx)
	switch {
	case err == nil:
		p.pause.Store(0)
	case ctx.Err() == nil:
		// Each attempt begins a segment and adds a record to wal/ended, which keeps only the newest 64.
		pause = min(max(2*pause, overwriteAfter), overwritePause)
		p.pause.Store(int64(pause))
		p.engine.Env().Logger.Warn("overwriting redacted versions failed", "retry", pause, "err", err)
	}
}
