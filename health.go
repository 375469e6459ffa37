package varve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/diskspace"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector"
)

// Space reports how much of the disk is available to a store, in bytes.
type Space struct {
	Free  int64 // available for writing
	Total int64 // size of the volume, 0 when unknown
	Low   int64 // the store warns below this

	Inodes int64 // files that may still be created
	// Number of files that the volume may hold, 0 when unknown or not limited. The store warns when Inodes is below a
	// twentieth of AllInodes (at most 256) plus Unfiled.
	AllInodes int64

	Unfiled int64 // files that are still to be made for changes in the log; counted only if inodes may be few
	// Number of memories for which there is space and inodes, at the mean size of those in the store, or 1.1 KB in an
	// empty store; 0 when unknown.
	Fits int64
}

// Short reports whether free space or inodes are below the level at which the store warns.
func (s Space) Short() bool { return diskspace.Space(s).Short() }

// Full reports whether the disk has no space for more data, or no inodes for more files.
func (s Space) Full() bool { return diskspace.Space(s).Full() }

// Health reports whether the store works as it should.
type Health struct {
	OK       bool
	Writable bool
	Problems []error // the problems, gravest first
	// reason why a store that was opened read-only cannot be written: the operating system refuses it, or a
	// *LinkedError; nil otherwise
	ReadOnly error
	Space    Space
	// why commits wait until files and index have caught up with the log; "" if no commit waits. It is not a problem:
	// it shows the speed of the machine.
	Slowed   string
	Pending  int64 // memories that wait for their embedding, as far as this process knows; Problems has the reason
	Embedder EmbedderHealth

	// Copy is the progress of a copy elsewhere that follows the log of the store. If the copy cannot continue, Problems
	// has the reason.
	Copy CopyHealth

	// Notes describes the state of the notes.
	Notes NotesHealth

	// SettingsUnknown reports that config.json is missing or not valid, which Problems explains: until it is valid, no
	// history is removed by its settings, no memory is evicted or deleted by age, and no missing file is treated as a
	// deletion.
	SettingsUnknown bool
}

// CopyHealth describes the remote copy of the store, to which the log is sent. See Offsite.
type CopyHealth struct {
	Follows bool      // whether there is a copy; otherwise all other fields are zero
	Sent    uint64    // position up to which the copy has the log
	At      time.Time // when the copy last reported
	Behind  int64     // bytes of log that are durable here and not sent to the copy
	Place   string    // URL of the copy, if this machine sends to it: see Offsite
	Sending bool      // a process of this machine sends the log to the copy
	// Success and LastErr are as recorded by the process that sends. Success is the time of the last attempt that sent
	// everything. LastErr is the error of the last attempt, "" if that attempt succeeded.
	Success time.Time
	LastErr string
	// Lag is the time since Success while the copy lacks log, by the clock of the store. It is 0 while the copy lacks
	// nothing, or if all of the log was never sent. A process that has nothing to send records its last success only
	// each minute, so Lag may be up to a minute too long.
	Lag time.Duration
	// reason why the copy cannot continue: a *CopyBehindError, a *past.EndedError of package wal/past, or damage of the
	// file that records its progress; nil if it can
	Err error

	stopped bool // sending has stopped until a user decides: see sender.ErrStopped
}

// NotesHealth reports the state of the notes of a store.
type NotesHealth struct {
	Count   int64    // number of notes
	Adopted []string // folders of notes that are reached through links from elsewhere: see memctl note adopt
	// no process watches the files although there are Adopted folders: an edit in one of these becomes a version only
	// when its file is read, or the store is opened
	Unwatched bool
}

// EmbedderHealth describes the state of Options.Embed. An embedder that is down is a problem of the store only
// while memories wait for it.
type EmbedderHealth struct {
	State    EmbedderState
	Since    time.Time // time of the first of these failures
	Failures int       // number of failures in a row
	Err      error     // the last failure
	Next     time.Time // while the embedder is down: the first call after this time tries it again
}

// EmbedderState is the state of the embedder of Options.Embed.
type EmbedderState string

// The states of an embedder.
const (
	EmbedderNone    = EmbedderState(embedding.StateNone)    // Options.Embed is nil
	EmbedderUnknown = EmbedderState(embedding.StateUnknown) // the embedder was not called yet
	EmbedderWorks   = EmbedderState(embedding.StateWorks)
	EmbedderFailing = EmbedderState(embedding.StateFailing) // the last calls failed, but writes still call the embedder
	EmbedderDown    = EmbedderState(embedding.StateDown)    // too many calls failed: writes no longer wait for it
	// the embedder was down, and one call is now trying whether it works again
	EmbedderProbing = EmbedderState(embedding.StateProbing)
)

// Health returns the state of the store, with the problems that keep it from working as it should.
func (st *Store) Health(ctx context.Context) Health {
	h := Health{Writable: true}
	bad := func(err error, writable bool) {
		h.Problems = append(h.Problems, err)
		h.Writable = h.Writable && writable
	}
	if err := st.inner.Engine.BeginUse(); err != nil {
		return Health{Problems: []error{err}}
	}
	defer st.inner.Engine.EndUse()
	if d := st.inner.Engine.Log().Damage(); d != nil {
		bad(d, false)
	}
	if l := st.inner.Engine.Linked(); l != nil {
		bad(l, false)
	}
	if st.inner.Engine.Env().ReadOnly {
		h.Writable, h.ReadOnly = false, st.inner.Engine.Env().Medium()
		if l := st.inner.Engine.Linked(); h.ReadOnly == nil && l != nil {
			h.ReadOnly = l
		}
	}
	if st.inner.Engine.Log().Notes().Poisoned() {
		bad(errs.ErrSyncFailed, false)
	}
	if err := st.inner.Engine.CatchUp(ctx); err != nil {
		bad(err, true)
	}
	for _, err := range st.inner.Flusher.Problems() {
		bad(err, true)
	}
	h.Slowed = st.inner.Flusher.Slowed()
	pending, err := st.inner.Embedding.Waiting()
	if h.Pending = pending; err != nil {
		bad(fmt.Errorf("%s for an embedding: %w", human.Count(int(pending), "memory waits", "memories wait"), err), true)
	}
	if st.o.Embed != nil {
		e := st.inner.Embedding.Breaker().Health()
		h.Embedder = EmbedderHealth{State: EmbedderState(e.State), Since: e.Since, Failures: e.Failures, Err: e.Err,
			Next: e.Next}
	}
	h.Copy = st.copyHealth(ctx)
	if err := h.Copy.Err; err != nil {
		bad(fmt.Errorf("sending the log to the copy of the store cannot continue: %w", err), true)
	}
	if h.Copy.stopped {
		bad(fmt.Errorf("sending the log to the copy of the store has stopped: %s", h.Copy.LastErr), true)
	}
	if h.Notes, err = st.notesHealth(ctx); err != nil {
		bad(err, true)
	}
	if err := st.inner.Engine.Settings().Err(); err != nil {
		h.SettingsUnknown = true
		bad(err, true)
	}
	for _, err := range st.inner.Adopter.Problems() {
		bad(err, true)
	}
	if s, err := diskspace.Look(st.inner.Engine); err == nil {
		if all, _, err := st.inner.Counts.Tally.Look(ctx, nil); err == nil {
			s.Fit(all.N, all.Bytes)
		}
		if h.Space = Space(s); s.Short() {
			soon := " soon"
			if s.Full() {
				soon = ""
			}
			bad(fmt.Errorf("%w%s: %s", errs.ErrDiskFull, soon, s.Say(st.inner.Engine.Env().Dir)), true)
		}
	}
	h.OK = len(h.Problems) == 0
	return h
}

func (st *Store) notesHealth(ctx context.Context) (h NotesHealth, err error) {
	if h.Count, err = st.inner.Notes.Count(ctx); err != nil {
		return h, err
	}
	e := st.inner.Engine
	h.Adopted, err = st.inner.Notes.Kind().Roots(e.Env().FS, e.Env().Dir)
	h.Unwatched = len(h.Adopted) > 0 && e.Log().Processes().Leader() == 0
	return h, err
}

// Stats are numbers that describe a store and the work of this process.
type Stats struct {
	Dir        string
	UUID       string
	Memories   int64
	Assemblies int64
	Durable    uint64 // position up to which the log is durable
	// position up to which all files are complete; it lags behind Durable for longer while a large scope of working
	// memory waits
	Flushed   uint64
	Spilled   uint64 // position up to which the index is complete
	Backlog   int64  // bytes of log that opening the store would read
	Unflushed int64  // bytes of log that are not in files yet
	Overlay   int    // keys that changed since the index was written
	IndexSize int64  // bytes of the files of the index: base and delta
	Processes []int  // ids of the processes that have the store open to write
	Unsure    []int  // those of Processes that may be dead: they are not visible from here
	// processes that run in another PID namespace, such as a container, by their ids in that namespace; they may be
	// dead too
	Elsewhere    []int
	LastFlush    time.Time
	HistoryBytes int64     // bytes of old log kept for the history, besides the log itself
	HistorySince time.Time // the beginning of the oldest part of the history that is kept; zero when unknown
	Edits        int       // edited files that this process has adopted or set aside
	Watcher      int       // id of the process that watches the files for edits, 0 if none does
	ToOverwrite  int       // redacted versions whose bytes are not overwritten yet
	// reason why Watcher checks all files each minute instead of being notified, "" if it is notified
	WatcherPolls string

	Vectors     int64  // number of vectors of memories and assemblies, in the files
	Dimension   int    // numbers of each vector, 0 while no vector is stored
	Metric      string // "ip" or "l2"
	VectorBytes int64  // bytes of the files of the vectors
	VectorsUpTo uint64 // position in the log up to which the vectors are complete
	Model       string // the model that makes the vectors, "" when unknown
	NextModel   string // a re-embedding by this model is running and has not changed Model yet
	// Model was changed, and documents with embeddings by the previous one are still being rewritten
	Switching bool

	Operations []OperationStats // calls of this handle, not of other processes
	Syncs      Durations        // durations of syncs of the log, by this process
	LockWaits  Durations        // durations of waits for locks of other processes
	Flushes    Durations        // durations of the rounds of the flusher
	Slowed     Durations        // durations of delays that slowed writers down so that the flusher could catch up

	VectorsKnown bool // the vectors are complete as of the index; otherwise the next search or flush completes them
}

// OperationStats counts the calls of an operation.
type OperationStats struct {
	// "put" (also PutAsync), "delete", "apply" (also PutAll), "transact" (also Update), "get", "search"
	Name       string
	OK, Failed uint64
	Durations  Durations // durations of the calls; of "get" only one call in sixteen is measured
}

// Durations is a histogram of the durations of one kind of operation.
type Durations struct {
	Bounds []time.Duration // upper bounds of the buckets, ascending
	Counts []uint64        // number of durations in each bucket, and last the number beyond the last bound
	Sum    time.Duration
}

// Count returns the number of measured durations.
func (d Durations) Count() (n uint64) {
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// durationsOf converts a reading of a meter to Durations.
func durationsOf(r *meter.Reading) Durations {
	return Durations{Bounds: slices.Clone(meter.Bounds[:]), Counts: r.Buckets[:], Sum: r.Sum}
}

// countOperations sets in s the numbers and durations of the calls of this Store, as its meters have measured them.
func (st *Store) countOperations(s *Stats) {
	m := st.inner.Engine.Env().Meters
	for k, name := range []string{meter.Put: "put", meter.Delete: "delete", meter.Apply: "apply",
		meter.Transact: "transact", meter.Get: "get", meter.Search: "search"} {
		r := m.Read(meter.Kind(k))
		s.Operations = append(s.Operations, OperationStats{name, r.OK, r.Failed, durationsOf(&r)})
	}
	for k, d := range map[meter.Kind]*Durations{meter.Sync: &s.Syncs, meter.LockWait: &s.LockWaits,
		meter.Flush: &s.Flushes, meter.Slowed: &s.Slowed} {
		r := m.Read(k)
		*d = durationsOf(&r)
	}
}

// Stats returns the current numbers about the store.
func (ad Admin) Stats() Stats {
	if ad.st.inner.Engine.BeginUse() != nil {
		return Stats{Dir: ad.st.inner.Engine.Env().Dir}
	}
	defer ad.st.inner.Engine.EndUse()
	_ = ad.st.inner.Engine.CatchUp(context.Background()) // slightly outdated numbers are fine
	s := Stats{
		Dir: ad.st.inner.Engine.Env().Dir, UUID: uuid.UUID(ad.st.inner.Engine.Log().UUID()).String(),
		Memories:   ad.st.inner.Engine.State().Live(kind.Memories.Letter),
		Assemblies: ad.st.inner.Engine.State().Live(kind.Assemblies.Letter),
		Durable:    ad.st.inner.Engine.Log().Durable(), Flushed: ad.st.inner.Engine.Log().Flushed(),
		Spilled: ad.st.inner.Engine.Log().Spilled(), Backlog: ad.st.inner.Engine.Log().Backlog(),
		Overlay: ad.st.inner.Engine.State().Overlay().Len(), Watcher: ad.st.inner.Engine.Log().Processes().Leader(),
		WatcherPolls: ad.st.inner.Engine.Log().Processes().Polling().String(),
	}
	for _, a := range ad.st.inner.Engine.Log().Processes().All() {
		if a.Elsewhere {
			s.Elsewhere = append(s.Elsewhere, a.PID)
			continue
		}
		s.Processes = append(s.Processes, a.PID)
		if a.Life == vfs.Unknown {
			s.Unsure = append(s.Unsure, a.PID)
		}
	}
	s.Unflushed = int64(s.Durable - min(s.Durable, s.Flushed))
	if set := ad.st.inner.Engine.State().Set(); set != nil {
		defer set.Release()
		if set.Base() != nil {
			s.IndexSize += set.Base().Size()
		}
		if set.Delta() != nil {
			s.IndexSize += set.Delta().Size()
		}
	}
	if rows, err := ad.st.inner.Engine.ToOverwrite(); err == nil {
		s.ToOverwrite = len(rows)
	}
	s.HistoryBytes, s.HistorySince = ad.st.inner.Engine.Log().Archive().Kept()
	ad.st.countVectors(&s)
	ad.st.countOperations(&s)
	ad.st.inner.Engine.Health().Mu.Lock()
	s.LastFlush, s.Edits = ad.st.inner.Engine.Health().At, ad.st.inner.Engine.Health().Edits
	ad.st.inner.Engine.Health().Mu.Unlock()
	return s
}

// countVectors sets in s the numbers about the vectors, such as their count, dimension and model.
func (st *Store) countVectors(s *Stats) {
	idx := st.inner.Engine.State().Set()
	if idx == nil {
		return
	}
	defer idx.Release()
	set, _ := st.inner.Vectors.Load(nil)
	if set == nil {
		return
	}
	defer set.Release()
	_, s.VectorsKnown = st.inner.Vectors.Cover(set, idx)
	model := st.inner.Vectors.Model()
	metric, dim := st.inner.Vectors.Shape(set, &model)
	s.Model, s.NextModel, s.Switching = st.inner.Vectors.Recorded(set), model.Next, model.Switching()
	s.Vectors, s.Dimension, s.Metric = set.Count(vector.Memories)+set.Count(vector.Assemblies), dim, metric.String()
	s.VectorBytes, s.VectorsUpTo = set.Bytes(), set.LSN()
}
