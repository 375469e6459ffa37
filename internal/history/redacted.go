package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/purgefile"
)

// A redacted version is shown without its content from the commit of its redaction on, even if its bytes are
// not overwritten yet, or return with a restored file of the log.

func (v *Version) redactedError() error {
	return &errs.RedactedError{Kind: v.Kind, ID: v.ID, Version: v.LSN, At: v.RedactedAt}
}

// redactions returns the record of each redacted version of a document, in the order of its versions.
func (h *History) redactions(k *engine.Kind, id string) ([]purgefile.Row, error) {
	t, err := h.engine.Purged()
	if err != nil {
		return nil, err
	}
	own := h.engine.Log().UUID()
	rows := slices.DeleteFunc(t.Redactions(k.Key(id)), func(r purgefile.Row) bool { return r.Store != own })
	slices.SortFunc(rows, func(a, b purgefile.Row) int { return cmp.Compare(a.Version, b.Version) })
	return rows, nil
}

// redaction returns the record of the redaction of a version. redacted is false if the version is not redacted.
func (h *History) redaction(k *engine.Kind, id string, version uint64) (row purgefile.Row, redacted bool, err error) {
	rows, err := h.redactions(k, id)
	for _, r := range rows {
		if r.Version == version {
			return r, true, nil
		}
	}
	return row, false, err
}

// redacted returns the redacted version that the record r describes, without its content.
func (h *History) redacted(k *engine.Kind, id string, r *purgefile.Row) Version {
	return Version{Kind: k.Noun, LSN: r.Version, Time: time.UnixMicro(r.Time).UTC(), ID: id,
		Writer: h.engine.Writer(r.Writer, r.Version), Redacted: true, RedactedAt: time.UnixMicro(r.At).UTC(),
		RedactedBy: h.engine.Writer(r.By, r.Since)}
}

// masked yields the versions of a document. It yields redacted versions without their content.
type masked struct {
	h     *History
	kind  *engine.Kind
	id    string
	rows  []purgefile.Row // redactions of versions that are not yielded yet
	err   error           // error of reading the redactions, because of which rows is not known
	yield func(Version, error) bool
	any   bool
	ended bool // the caller has ended the iteration
}

func (h *History) mask(k *engine.Kind, id string, yield func(Version, error) bool) *masked {
	m := &masked{h: h, kind: k, id: id, yield: yield}
	m.rows, m.err = h.redactions(k, id)
	return m
}

func (m *masked) pass(v Version, err error) bool {
	m.any = true
	m.ended = m.ended || !m.yield(v, err)
	return !m.ended
}

// give yields the redacted versions that come before v, and then v. It returns false if the iteration must end: the
// caller has ended it, or the records of redactions cannot be read.
func (m *masked) give(v Version, err error) bool {
	if m.err != nil { // a version that may be redacted is not shown
		m.pass(Version{}, m.err)
		return false
	}
	for err == nil && len(m.rows) > 0 && m.rows[0].Version < v.LSN {
		if !m.next() {
			return false
		}
	}
	if err == nil && len(m.rows) > 0 && m.rows[0].Version == v.LSN {
		return m.next()
	}
	return m.pass(v, err)
}

func (m *masked) next() bool {
	v := m.h.redacted(m.kind, m.id, &m.rows[0])
	m.rows = m.rows[1:]
	return m.pass(v, nil)
}

// end yields the remaining redacted versions. It reports whether masked has yielded anything at all.
func (m *masked) end(ctx context.Context) bool {
	for len(m.rows) > 0 && m.err == nil && !m.ended && ctx.Err() == nil {
		m.next()
	}
	return m.any
}
