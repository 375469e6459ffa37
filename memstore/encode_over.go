package memstore

import (
	"strconv"
	"time"

	"github.com/varve-db/varve/internal/docfile"
)

// encodeOver writes a Memory over the text that it was decoded from: every
// field is compared with its text, and only what differs is written anew.
func (m *Memory) encodeOver(lim Limits) ([]byte, error) {
	o := overlay{doc: m.source.Clone(), lim: lim}
	o.text(memberID, m.ID)
	o.text(memberContent, m.Content)
	o.floats(memberEmbedding, m.Embedding)
	o.time(memberTimestamp, m.Timestamp)
	o.score(memberScore, m.QuickRecalScore)
	o.time(memberScoreUpdated, m.QuickRecalUpdated)
	o.metadata(m.Metadata)
	o.count(memberAccessCount, m.AccessCount)
	o.time(memberLastAccess, m.LastAccessTime)
	o.floats(memberHyperbolic, m.HyperbolicEmbedding)
	o.time(memberCreatedAt, m.CreatedAt)
	o.time(memberUpdatedAt, m.UpdatedAt)
	o.time(memberExpiresAt, m.ExpiresAt)
	if o.err != nil {
		return nil, o.err
	}
	size := 8
	for _, member := range o.doc.Members() {
		size += len(member.Name) + len(member.Value) + 16
	}
	doc := o.doc.AppendDocument(make([]byte, 0, size))
	// What was kept may have been read under a higher limit.
	if err := docfile.CheckDepth(doc, 0, lim.Depth); err != nil {
		return nil, docfile.InField("memory", err)
	}
	return doc, nil
}

type overlay struct {
	doc *docfile.Object
	lim Limits
	err error
}

func (o *overlay) set(name string, value []byte, err error) {
	if err != nil {
		if o.err == nil {
			o.err = docfile.InField(name, err)
		}
		return
	}
	o.doc.Set(name, value, memberOrder())
}

// blank says that there is no text, or null: a field of its zero value leaves
// either as it is.
func (o *overlay) blank(name string) bool {
	raw, ok := o.doc.Get(name)
	return !ok || raw[0] == 'n'
}

func (o *overlay) text(name, s string) {
	if s == "" && o.blank(name) {
		return
	}
	if raw, ok := o.doc.Get(name); ok && docfile.EqualString(raw, s) {
		return
	}
	value, err := docfile.AppendString(nil, s)
	o.set(name, value, err)
}

func (o *overlay) floats(name string, list []float32) {
	if list == nil {
		if !o.blank(name) {
			o.doc.Remove(name)
		}
		return
	}
	if raw, ok := o.doc.Get(name); ok && docfile.EqualFloats(raw, list) {
		return
	}
	value, err := docfile.AppendFloats(nil, list, 1)
	o.set(name, value, err)
}

func (o *overlay) time(name string, t time.Time) {
	raw, ok := o.doc.Get(name)
	if ok && docfile.NormalTime(raw) {
		if old, err := docfile.DecodeTime(raw, nil); err == nil && old.Equal(t) {
			return
		}
	}
	if !t.IsZero() {
		o.set(name, docfile.AppendTime(nil, t), nil)
	} else if !o.blank(name) {
		o.doc.Remove(name)
	}
}

func (o *overlay) score(name string, f float64) {
	if f == 0 && o.blank(name) {
		return
	}
	if raw, ok := o.doc.Get(name); ok {
		if old, err := decodeScore(raw); err == nil && old == f {
			return
		}
	}
	value, err := docfile.AppendFloat(nil, f, 64)
	o.set(name, value, err)
}

func (o *overlay) count(name string, n int64) {
	if n == 0 && o.blank(name) {
		return
	}
	if raw, ok := o.doc.Get(name); ok {
		if old, err := decodeCount(raw); err == nil && old == n {
			return
		}
	}
	o.set(name, strconv.AppendInt(nil, n, 10), nil)
}

func (o *overlay) metadata(m map[string]any) {
	if len(m) == 0 && o.blank(memberMetadata) {
		return
	}
	raw, ok := o.doc.Get(memberMetadata)
	if !ok {
		value, err := docfile.AppendValue(nil, m, 1, o.lim.Depth)
		o.set(memberMetadata, value, err)
		return
	}
	value, same, err := docfile.MergeValue(raw, m, 1, o.lim.Depth)
	if err != nil || !same {
		o.set(memberMetadata, value, err)
	}
}
