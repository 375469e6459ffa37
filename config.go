package varve

import (
	"context"

	"github.com/varve-db/varve/internal/settings"
)

// Config is what belongs to the store and not to a process: config.json. Zero
// fields mean the default. Nothing that is needed to decode the store is in it.
type Config struct {
	// Format marks a folder as a store; the member is called "varve".
	Format int `json:"varve"`

	IndexBackupCount *int  `json:"index_backup_count,omitempty"` // older indexes that are kept: 3
	AutoRepair       *bool `json:"auto_repair,omitempty"`        // heal at open what costs little: true
	BackupInterval   *int  `json:"backup_interval,omitempty"`    // seconds between two index backups: 3600
	FlushThreshold   *int  `json:"flush_threshold,omitempty"`    // changes that start a flush: 20
	AdoptDeletions   *bool `json:"adopt_deletions,omitempty"`    // while somebody watches, deleting a file deletes what it holds: true

	// What one document may have, put or edited by hand; what is stored is read all the same.
	MaxMemoryBytes   int `json:"max_memory_bytes,omitempty"`   // of one memory's JSON: 16 MiB
	MaxIDBytes       int `json:"max_id_bytes,omitempty"`       // 1,024
	MaxDepth         int `json:"max_depth,omitempty"`          // of nesting: 100
	MaxEmbeddingDims int `json:"max_embedding_dims,omitempty"` // 65,536

	MaxAssemblyMembers int `json:"max_assembly_members,omitempty"` // 100,000
	ActivationHalfLife int `json:"activation_half_life,omitempty"` // seconds in which an assembly's activation fades to half: 86,400

	// What the store may hold, 0: as much as there is room for. What stands in the
	// files counts, with embeddings, also what has expired and is not deleted yet; not
	// what is made of it (index, vectors), the log, assemblies and working memory. A
	// write that would pass a limit is refused with ErrLimit, or others make room: see
	// AtLimit. What a person does to the files is never refused by these, nor what the store adds
	// to memories that were let in (an embedding that comes later, Touch): that may
	// take it over its limit, and the next write is refused, or makes room for both.
	MaxMemories        int64 `json:"max_memories,omitempty"`
	MaxBytes           int64 `json:"max_bytes,omitempty"` // of all memories' JSON files
	MaxSessionMemories int64 `json:"max_session_memories,omitempty"`
	MaxSessionBytes    int64 `json:"max_session_bytes,omitempty"`

	AtLimit string `json:"at_limit,omitempty"` // AtLimitRefuse when empty
	// MaxAge is how many seconds after its last write a memory is deleted, an hour or two
	// later, 0: never. Until then every read has it; only Memory.ExpiresAt hides at once.
	MaxAge int64 `json:"max_age,omitempty"`

	Vectors *VectorConfig `json:"vectors,omitempty"`
}

// What happens to a write that would pass a limit.
const (
	AtLimitRefuse      = settings.AtLimitRefuse      // ErrLimit
	AtLimitEvictOldest = settings.AtLimitEvictOldest // those go that were written longest ago
	AtLimitEvictLowest = settings.AtLimitEvictLowest // those of the lowest quickrecal_score go, of several the oldest
)

// VectorConfig fixes what is otherwise decided by the first embedding. A store whose vectors differ
// from this rebuilds them; embeddings that do not fit have none.
type VectorConfig struct {
	Dimension int    `json:"dimension,omitempty"` // 0: that of the first embedding
	Metric    string `json:"metric,omitempty"`    // "ip", the cosine, or "l2"; "ip" when empty
	Model     string `json:"model,omitempty"`     // what makes the embeddings, for those who read it
}

// in and out of package settings, which has the same fields.
func (c *Config) in() *settings.Config {
	return &settings.Config{
		Format: c.Format, IndexBackupCount: c.IndexBackupCount, AutoRepair: c.AutoRepair, BackupInterval: c.BackupInterval, FlushThreshold: c.FlushThreshold, AdoptDeletions: c.AdoptDeletions, MaxMemoryBytes: c.MaxMemoryBytes, MaxIDBytes: c.MaxIDBytes, MaxDepth: c.MaxDepth, MaxEmbeddingDims: c.MaxEmbeddingDims, MaxAssemblyMembers: c.MaxAssemblyMembers, ActivationHalfLife: c.ActivationHalfLife, MaxMemories: c.MaxMemories, MaxBytes: c.MaxBytes, MaxSessionMemories: c.MaxSessionMemories, MaxSessionBytes: c.MaxSessionBytes, AtLimit: c.AtLimit, MaxAge: c.MaxAge, Vectors: (*settings.VectorConfig)(c.Vectors),
	}
}

func configOf(c *settings.Config) Config {
	return Config{
		Format: c.Format, IndexBackupCount: c.IndexBackupCount, AutoRepair: c.AutoRepair, BackupInterval: c.BackupInterval, FlushThreshold: c.FlushThreshold, AdoptDeletions: c.AdoptDeletions, MaxMemoryBytes: c.MaxMemoryBytes, MaxIDBytes: c.MaxIDBytes, MaxDepth: c.MaxDepth, MaxEmbeddingDims: c.MaxEmbeddingDims, MaxAssemblyMembers: c.MaxAssemblyMembers, ActivationHalfLife: c.ActivationHalfLife, MaxMemories: c.MaxMemories, MaxBytes: c.MaxBytes, MaxSessionMemories: c.MaxSessionMemories, MaxSessionBytes: c.MaxSessionBytes, AtLimit: c.AtLimit, MaxAge: c.MaxAge, Vectors: (*VectorConfig)(c.Vectors),
	}
}

// Resolved is the configuration with every default spelt out.
func (c Config) Resolved() Config {
	d := c.in().Resolved()
	return configOf(&d)
}

// Validate says what is wrong, as a *FieldError.
func (c *Config) Validate() error { return c.in().Validate() }

// Config is the store's configuration as last read, a copy. It is read again when the
// file's size or time changes; an invalid one is reported and the last good one
// holds.
func (ad Admin) Config() Config {
	c := ad.st.engine.Settings.Now().Clone()
	return configOf(&c)
}

// SetConfig writes config.json. Other processes read it within a second. It writes
// every member of c, the whole of it: what another process has set since c was read is
// overwritten. UpdateConfig changes single members.
func (ad Admin) SetConfig(c Config) error {
	return ad.UpdateConfig(context.Background(), func(now *Config) error {
		*now = configOf(new(c.in().Clone()))
		return nil
	})
}

// UpdateConfig changes config.json as it stands: no other caller changes it between the reading and
// the writing. A member that is not valid gives way to its default; a file of a newer format is
// ErrNewerFormat. An error of change is returned, and nothing is written. change must not use the
// store. Other processes read the file within a second.
func (ad Admin) UpdateConfig(ctx context.Context, change func(c *Config) error) error {
	if ad.st.engine.Env.ReadOnly {
		return ErrReadOnly
	}
	return ad.st.engine.UpdateSettings(ctx, func(c *settings.Config) error {
		own := configOf(c)
		if err := change(&own); err != nil {
			return err
		}
		*c = *own.in()
		return nil
	})
}
