package varve

import (
	"github.com/varve-db/varve/errs"
)

// OpenReport says what Open found and did.
type OpenReport struct {
	Created   bool  // a new store
	Recovered bool  // nobody had it open: the log's end was read and made durable again
	Clean     bool  // it had been closed, or nothing came after the last flush
	Replayed  int   // entries of the log
	LogBytes  int64 // that were read for it

	TornTail   *TornTail             // unacknowledged bytes behind the last commit were cut
	Healed     *errs.CorruptionError // damage in the log that cost nothing
	HealedFrom string                // the copy in the archive that the segment was put back from; "" when the files had it all
	Damage     *errs.CorruptionError // below what was durable: the store is read-only
	Rebuilt    *Rebuilt              // the index was made again

	Drift         *Drift // of memories/; nil while nothing was compared: the folder is as we left it, or it is being done
	AssemblyDrift *Drift // of assemblies/, likewise

	Problems     []error // the first of them
	ProblemCount int
}

// TornTail is what was cut off the log.
type TornTail struct {
	LSN   uint64
	Bytes int64
	Path  string // where the bytes were put aside, relative to the store
}

// Rebuilt says that the index was made again.
type Rebuilt struct {
	Why      error
	From     string // the older index that it was made from, with the log; "" when it was made from the files
	Memories int
}

// OpenReport says what Open found and did. Files and index are compared in the
// background when a folder was changed by somebody else; what that finds is
// added when it is done.
func (ad Admin) OpenReport() *OpenReport {
	l := ad.st.engine.Log.Report()
	r := &OpenReport{
		Created: l.Created, Recovered: l.Recovered, Clean: l.Clean, Replayed: l.Replayed, LogBytes: l.Bytes,
		Healed: l.Healed, HealedFrom: l.HealedFrom, Damage: l.Damage, Drift: (*Drift)(ad.st.edits.Drifts[0].Load()), AssemblyDrift: (*Drift)(ad.st.edits.Drifts[1].Load()),
	}
	if t := l.TornTail; t != nil {
		r.TornTail = &TornTail{LSN: t.At, Bytes: t.Bytes, Path: t.Path}
	}
	o := &ad.st.engine.Opened
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if m := o.Remade; m != nil {
		r.Rebuilt = &Rebuilt{Why: m.Why, From: m.From, Memories: m.Memories}
	}
	r.Problems, r.ProblemCount = append(r.Problems, o.Problems...), o.Count
	return r
}
