package varve

import "github.com/varve-db/varve/errs"

// OpenReport reports what Open found and did.
type OpenReport struct {
	Created   bool  // Open created the store
	Recovered bool  // no other process had the store open, so this one read the log to its end and synced it
	Clean     bool  // the store was closed cleanly, or nothing was written after the last flush
	Replayed  int   // entries of the log that were read
	LogBytes  int64 // bytes of the log that were read

	TornTail *TornTail             // unacknowledged bytes after the last commit were cut
	Healed   *errs.CorruptionError // damage in the log that lost no data
	// copy in the archive from which the damaged segment was restored; "" if the document files had all its data
	HealedFrom string
	Damage     *errs.CorruptionError // damage in the durable part of the log: the store is read-only
	Rebuilt    *Rebuilt              // the index was rebuilt

	// differences between memories/ and the index; nil if nothing was compared, because the folder is unchanged or
	// another process had the store open, and while the comparison is running
	Drift         *Drift
	AssemblyDrift *Drift // differences between assemblies/ and the index; nil in the same cases as Drift

	HistoryGone *errs.HistoryGoneError // set if the store's log is lost, and a new one was begun

	Problems     []error // the first problems that Open found and that no other field reports
	ProblemCount int
}

// TornTail describes the bytes that were cut off the end of the log.
type TornTail struct {
	LSN   uint64
	Bytes int64
	Path  string // the file to which the bytes were moved, relative to the store
}

// Rebuilt describes how the index was rebuilt.
type Rebuilt struct {
	Why error
	// the older index from which it was rebuilt, together with the log; "" if it was rebuilt from the files
	From     string
	Memories int
}

// OpenReport reports what Open found and did. If another program has changed the folder, the store compares the files
// with the index in the background. The report has the result of this comparison as soon as it is done.
func (ad Admin) OpenReport() *OpenReport {
	l := ad.st.inner.Engine.Log().Report()
	r := &OpenReport{
		Created: l.Created, Recovered: l.Recovered, Clean: l.Clean, Replayed: l.Replayed, LogBytes: l.Bytes,
		Healed: l.Healed, HealedFrom: l.HealedFrom, Damage: l.Damage, Drift: (*Drift)(ad.st.inner.Adopter.Drifts()[0].Load()),
		AssemblyDrift: (*Drift)(ad.st.inner.Adopter.Drifts()[1].Load()),
	}
	if t := l.TornTail; t != nil {
		r.TornTail = &TornTail{LSN: t.At, Bytes: t.Bytes, Path: t.Path}
	}
	if l.Gone != 0 {
		r.HistoryGone = &errs.HistoryGoneError{Begin: l.Gone}
	}
	o := ad.st.inner.Engine.Opened()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if m := o.Remade; m != nil {
		r.Rebuilt = &Rebuilt{Why: m.Why, From: m.From, Memories: m.Memories}
	}
	r.Problems, r.ProblemCount = append(r.Problems, o.Problems...), o.Count
	return r
}
