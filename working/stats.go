package working

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Stats are statistics of a scope, counted at one moment.
type Stats struct {
	Level       Level     `json:"scope_type"`
	ID          string    `json:"scope_id"`
	Scope       string    `json:"scope"` // key of the scope, as Scope.Key returns it
	Created     time.Time `json:"created_at"`
	Total       int       `json:"total_keys"` // sum of UserKeys, Expired, entries, checkpoints and the task state
	UserKeys    int       `json:"user_keys"`
	Expired     int       `json:"expired_keys"` // the user's keys that have expired and still use memory
	Bytes       int64     `json:"bytes"`        // number of bytes of the user's keys and values
	Checkpoints int       `json:"checkpoint_count"`
	Notes       int       `json:"scratchpad_entries"`
	HasTask     bool      `json:"has_task_state"`
	Home        string    `json:"home"`
	Fallback    bool      `json:"using_fallback"`
	Latency     Latency   `json:"latency"`
}

// Latency has quantiles of the durations of this Memory's last operations.
type Latency struct {
	Operations    int // number of operations that are included, at most 1,024
	P50, P95, P99 time.Duration
}

// Stats returns statistics of the scope.
func (m *Memory) Stats(ctx context.Context) (Stats, error) {
	res, err := m.do(ctx, OpCount{})
	if err != nil {
		return Stats{}, err
	}
	c := res.Counts
	s := Stats{Level: m.scope.Level(), ID: m.scope.ID(), Scope: m.scope.Key(), Created: c.Created,
		UserKeys: c.Keys, Expired: c.Expired, Bytes: c.Bytes, Checkpoints: c.Checkpoints, Notes: c.Notes, HasTask: c.Task,
		Home: m.Home(), Fallback: m.UsingFallback(), Latency: m.took.quantiles()}
	s.Total = s.UserKeys + s.Expired + s.Notes + s.Checkpoints
	if s.HasTask {
		s.Total++
	}
	return s, nil
}

// latencies has the durations of the last operations, at most as many as the constant window.
type latencies struct {
	mu     sync.Mutex
	window []time.Duration
	next   int
}

const window = 1024

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.window) < window {
		l.window = append(l.window, d)
		return
	}
	l.window[l.next] = d
	l.next = (l.next + 1) % window
}

func (l *latencies) quantiles() Latency {
	l.mu.Lock()
	all := slices.Clone(l.window)
	l.mu.Unlock()
	if len(all) == 0 {
		return Latency{}
	}
	slices.Sort(all)
	// The smallest duration that at least percent of all durations do not exceed.
	at := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] }
	return Latency{Operations: len(all), P50: at(50), P95: at(95), P99: at(99)}
}
