package repair

import (
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// work checks what an entry of working memory carries.
func (v *verify) work(e *wal.Entry) error {
	_, _, err := v.workEntry(e)
	return err
}

func (v *verify) workEntry(e *wal.Entry) (*working.LogEntry, record.View, error) {
	view, err := record.Parse(e.Value)
	if err != nil {
		return nil, view, err
	}
	body, err := v.s.Codec.Doc(&view, documentLimit)
	if err != nil {
		return nil, view, err
	}
	w, err := working.DecodeLogEntry(view.Line, body)
	if err != nil {
		return nil, view, err
	}
	w.Fresh = w.Fresh || e.Delete // nothing is left of what was there before
	return w, view, nil
}
