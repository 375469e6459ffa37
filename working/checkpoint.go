package working

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// MaxDescription is the maximum length of a checkpoint's description, in bytes.
const MaxDescription = 64 << 10

// Snapshot is the state of a scope at one moment.
type Snapshot struct {
	Info   CheckpointInfo // description of the checkpoint; zero for the current state
	Values map[string]any
	TTL    map[string]time.Duration // remaining lifetimes of the values that expire, by key
	Task   *Task                    // nil: the scope has no task state
	Notes  []Note
}

// Checkpoint saves the current state as a checkpoint: the values with their remaining lifetimes, the task state and the
// scratchpad. It stores only the differences from the previous checkpoint. If there are then more than
// Options.Checkpoints, the oldest ones are deleted.
func (m *Memory) Checkpoint(ctx context.Context, description string) (CheckpointInfo, error) {
	if err := checkText("description", description, MaxDescription); err != nil {
		return CheckpointInfo{}, err
	}
	id, err := m.newID()
	if err != nil {
		return CheckpointInfo{}, err
	}
	return m.mark(ctx, OpCheckpoint{ID: id, Description: description, Keep: m.keep()})
}

func (m *Memory) keep() int { return limit(m.opts.Checkpoints, DefaultCheckpoints) }

func (m *Memory) newID() (string, error) {
	r := m.opts.Random
	if r == nil {
		r = rand.Reader
	}
	id, err := uuid.NewRandomFromReader(r)
	if err != nil {
		return "", fmt.Errorf("working: creating the id of a checkpoint: %w", err)
	}
	return id.String(), nil
}

func (m *Memory) mark(ctx context.Context, op Op) (CheckpointInfo, error) {
	res, err := m.do(ctx, op)
	if err != nil {
		return CheckpointInfo{}, err
	}
	return res.Checkpoints[0], nil
}

// Checkpoints lists the checkpoints, the oldest first, without reading their contents. If a checkpoint is damaged, its
// field Err has the error; the other checkpoints are listed nevertheless.
func (m *Memory) Checkpoints(ctx context.Context) ([]CheckpointInfo, error) {
	res, err := m.do(ctx, OpCheckpoints{})
	return res.Checkpoints, err
}

// Restore replaces the current state by the state of a checkpoint. A value that expires gets the lifetime that it had
// left when the checkpoint was made. No checkpoint is deleted, not even a newer one. Restore saves the replaced state
// as a new checkpoint and returns that checkpoint: to undo the Restore, restore it. Readers see either the old or the
// new state.
func (m *Memory) Restore(ctx context.Context, id string) (CheckpointInfo, error) {
	if err := checkCheckpoint(id); err != nil {
		return CheckpointInfo{}, err
	}
	undo, err := m.newID()
	if err != nil {
		return CheckpointInfo{}, err
	}
	return m.mark(ctx, OpRestore{ID: id, Undo: undo, Description: "before the restore of " + id, Keep: m.keep()})
}

// checkCheckpoint returns an error that matches ErrNotFound if id is not a UUID, because then no checkpoint has this
// id.
func checkCheckpoint(id string) error {
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return &CheckpointError{ID: id, Err: fmt.Errorf("%w: the id of a checkpoint must be a UUID of 36 characters",
			ErrNotFound)}
	}
	return nil
}

// DeleteCheckpoint removes a checkpoint, and reports whether the checkpoint existed.
func (m *Memory) DeleteCheckpoint(ctx context.Context, id string) (bool, error) {
	if checkCheckpoint(id) != nil {
		return false, nil
	}
	res, err := m.do(ctx, OpDiscard{ID: id})
	return res.N > 0, err
}

// LoadCheckpoint reads the contents of a checkpoint.
func (m *Memory) LoadCheckpoint(ctx context.Context, id string) (*Snapshot, error) {
	if err := checkCheckpoint(id); err != nil {
		return nil, err
	}
	return m.load(ctx, id)
}

// Snapshot reads the whole scope as of one moment.
func (m *Memory) Snapshot(ctx context.Context) (*Snapshot, error) { return m.load(ctx, "") }

func (m *Memory) load(ctx context.Context, id string) (*Snapshot, error) {
	res, err := m.do(ctx, OpLoad{ID: id})
	if err != nil {
		return nil, err
	}
	return m.numbers.snapshot(&res)
}

// NewSnapshot returns the Snapshot in the Result of an OpLoad.
func NewSnapshot(res *Result) (*Snapshot, error) { return asFloat.snapshot(res) }

// NewSnapshotAsWritten is like NewSnapshot, but decodes numbers as Options.AsWritten describes.
func NewSnapshotAsWritten(res *Result) (*Snapshot, error) { return asWritten.snapshot(res) }

func (d decoder) snapshot(res *Result) (_ *Snapshot, err error) {
	s := &Snapshot{TTL: map[string]time.Duration{}, Notes: res.Notes}
	if len(res.Checkpoints) > 0 {
		s.Info = res.Checkpoints[0]
	}
	if s.Values, err = d.values(res.Items); err != nil {
		return nil, err
	}
	for _, it := range res.Items {
		if key, ok := UserKey(it.Name); ok && it.TTL >= 0 {
			s.TTL[key] = remaining(it.TTL)
		}
		if it.Name == TaskName {
			t, err := d.task(it)
			if err != nil {
				return nil, err
			}
			s.Task = &t
		}
	}
	return s, nil
}
