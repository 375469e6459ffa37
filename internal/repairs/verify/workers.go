package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/repair"
)

// workers compares documents with their files, one chunk of documents at a time. While the other goroutines process a
// chunk, the caller's goroutine lists the next chunk. After that, the caller's goroutine helps the others, and then
// reports the findings in the order of the list.
type workers struct {
	v     *Run
	chunk *atWork
}

type atWork struct {
	jobs    []entryJob
	swaps   uint64
	results []Judged
	next    atomic.Int64
	others  sync.WaitGroup
}

// next starts to check a chunk of documents, after it has completed the previous chunk and reported its findings.
// swaps is the swap counter of the index from which the documents were listed.
func (w *workers) next(jobs []entryJob, swaps uint64) error {
	if err := w.v.ctx.Err(); err != nil {
		return err
	}
	was := w.chunk
	w.chunk = nil
	if was != nil {
		was.work(w.v)
		was.others.Wait()
	}
	if len(jobs) > 0 {
		c := &atWork{jobs: jobs, swaps: swaps, results: make([]Judged, len(jobs))}
		for range min(w.v.o.Workers, len(jobs)) - 1 {
			c.others.Go(func() { c.work(w.v) })
		}
		w.chunk = c
	}
	if was == nil {
		return nil
	}
	return was.report(w.v)
}

// wait stops the other goroutines and waits for them; it is for a caller that ends before the last chunk.
func (w *workers) wait() {
	if w.chunk != nil {
		w.chunk.next.Add(chunk)
		w.chunk.others.Wait()
	}
}

func (c *atWork) work(v *Run) {
	var buf []byte
	for {
		i := int(c.next.Add(1)) - 1
		if i >= len(c.jobs) {
			return
		}
		c.results[i] = v.entry(&c.jobs[i], c.swaps, &buf)
	}
}

func (c *atWork) report(v *Run) error {
	for i, j := range c.results {
		if j.Err != nil {
			return j.Err
		}
		switch c.jobs[i].kind {
		case kind.Memories:
			v.sum.Memories++
		case kind.Assemblies:
			v.sum.Assemblies++
		default:
			if v.sum.Others == nil {
				v.sum.Others = map[string]int64{}
			}
			v.sum.Others[c.jobs[i].kind.Folder]++
		}
		v.sum.Bytes += j.bytes
		if j.read {
			v.sum.Files++
		}
		if j.Finding != nil && j.suspect && len(v.suspects) < suspectsMost {
			v.suspects = append(v.suspects, j.Finding)
		} else if j.Finding != nil {
			if err := v.report(*j.Finding); err != nil {
				return err
			}
		}
		for _, f := range j.more {
			if f.Kind == repair.EmbeddingsPending {
				v.unembedded.add(f.ID)
				continue
			}
			if err := v.report(f); err != nil {
				return err
			}
		}
	}
	v.progress(int64(len(c.jobs)))
	return nil
}

// entry checks the index line of a document and compares the document with its file. swaps is the swap counter of the
// index that has the line. buf is a buffer for reuse.
func (v *Run) entry(job *entryJob, swaps uint64, buf *[]byte) Judged {
	if job.line == nil {
		return v.Document(job.kind, job.id, nil, 0)
	}
	line, err := index.ParseLine(job.line)
	if err != nil {
		return v.Document(job.kind, job.id, nil, 0) // reported with the index
	}
	if line.Filepath != job.kind.Folder+"/"+job.name && !v.indexBad {
		return Judged{Finding: &repair.Finding{
			Kind: repair.IndexLine, Severity: repair.Healable, Path: index.BaseName, Offset: -1, ID: job.id, LSN: line.Version,
			Stake: "other programs that read file names from the index; the store finds the file", Heals: repair.ByIndex,
			Next: repair.NextRebuild,
			Err:  fmt.Errorf("the index line names the file %s, not %s", human.Quote(line.Filepath), job.kind.File(job.id)),
		}}
	}
	if j, ok := v.glance(job, &line, swaps, buf); ok {
		return j
	}
	j := v.Document(job.kind, job.id, &line, swaps)
	if j.more == nil { // the document was not compared with its vector
		if f := v.vectors.line(job.kind, job.id, &line, nil); f != nil {
			j.more = append(j.more, *f)
		}
	}
	return j
}

// glance is the fast check of a document. It succeeds if the document's file matches the line in the index, as nearly
// all files do: such bytes were valid when they were written. It returns false if the file does not match, or if the
// document or the index has changed; swaps is the swap counter of the index that has the line. Then the caller must
// call Run.Document, which checks thoroughly.
func (v *Run) glance(job *entryJob, line *index.Entry, swaps uint64, buf *[]byte) (Judged, bool) {
	if v.indexBad {
		return Judged{}, false
	}
	data, info, err := v.Folders[job.kind.At].Glance(job.name, *buf, min(line.Size, int64(v.Source.FileLimit)))
	*buf = data
	if err != nil || len(data) == 0 {
		return Judged{}, false
	}
	f := File{Data: data, Info: info, Hash: sha256.Sum256(data)}
	if !f.Has(line) || !f.sameTime(line) {
		return Judged{}, false
	}
	if err := v.Source.CatchUp(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return Judged{}, false
	}
	if _, _, over := v.Source.State.Overlay().Get(job.kind.Letter, job.id); over || v.Source.State.Swaps() != swaps {
		return Judged{}, false
	}
	j := Judged{bytes: int64(len(data)), read: true}
	if s := v.vectors; job.kind == kind.Assemblies || line.Dimension != 0 && s.judged(job.kind, job.id) {
		j.more = v.related(job.kind, job.id, &f)
	} else {
		if lf := s.line(job.kind, job.id, line, nil); lf != nil {
			j.more = append(j.more, *lf)
		}
		if line.Dimension == 0 && s.embeds(job.kind) {
			if c, err := v.Decode(job.kind, job.name, f.Data); err == nil {
				j.more = append(j.more, lacks(job.id, c.Memory)...)
			}
		}
	}
	return j, true
}
