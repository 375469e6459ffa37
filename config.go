package varve

import (
	"context"
	"time"

	"github.com/varve-db/varve/internal/settings"
)

// Config has the settings of the store in config.json, in contrast to Options, the settings of a process. Zero fields
// mean the default. No setting is needed to decode the store.
type Config struct {
	// Format marks a folder as a store; its JSON member is called "varve".
	Format int `json:"varve"`

	IndexBackupCount *int  `json:"index_backup_count,omitempty"` // number of older indexes that are kept; default 3
	AutoRepair       *bool `json:"auto_repair,omitempty"`        // make cheap repairs at open; default true
	BackupInterval   *int  `json:"backup_interval,omitempty"`    // seconds between two index backups; default 3600
	FlushThreshold   *int  `json:"flush_threshold,omitempty"`    // number of changes that start a flush; default 20
	// AdoptDeletions makes the store delete a memory whose file was deleted by hand, while a process watches the files;
	// default true.
	AdoptDeletions *bool `json:"adopt_deletions,omitempty"`
	// Patterns of files in notes/ that are not adopted as new notes. nil: files of editors and file managers (*~,
	// *.swp, *.tmp, .DS_Store and others, see docs/reference/settings.md); empty: none. A pattern without a slash
	// matches the last segment of the path, any other pattern the whole path, with ** for any number of segments.
	NotesIgnore []string `json:"notes_ignore,omitzero"`
	// BlockPurged refuses to put a text that was purged, with ErrPurged; default false.
	BlockPurged bool `json:"block_purged,omitempty"`

	// Limits of one document that is put or edited by hand; documents that are already stored are read regardless.
	MaxMemoryBytes   int `json:"max_memory_bytes,omitempty"`   // bytes of one memory's JSON; default 16 MiB
	MaxIDBytes       int `json:"max_id_bytes,omitempty"`       // bytes of an id; default 1,024
	MaxDepth         int `json:"max_depth,omitempty"`          // levels of nesting; default 100
	MaxEmbeddingDims int `json:"max_embedding_dims,omitempty"` // numbers of an embedding; default 65,536

	MaxAssemblyMembers int `json:"max_assembly_members,omitempty"` // members of an assembly; default 100,000
	// seconds after which an assembly's activation has halved; default 86,400
	ActivationHalfLife int `json:"activation_half_life,omitempty"`

	// Limits of the store; 0 means unlimited. They count the files with the embeddings in them, including expired
	// memories that are not deleted yet. Derived data (index, vectors), the log, assemblies and working memory do not
	// count. A write that would exceed a limit is refused with ErrLimit, or other memories are evicted: see AtLimit.
	// Edits of the files by hand are never refused by these limits. Neither is what the store adds to stored memories
	// (an embedding that comes later, Touch): that may exceed the limit, and the next write is refused, or evicts
	// enough memories to make room for these additions and for itself.
	MaxMemories        int64 `json:"max_memories,omitempty"`
	MaxBytes           int64 `json:"max_bytes,omitempty"` // bytes of all memories' JSON files
	MaxSessionMemories int64 `json:"max_session_memories,omitempty"`
	MaxSessionBytes    int64 `json:"max_session_bytes,omitempty"`

	// AtLimitRefuse, AtLimitEvictOldest or AtLimitEvictLowest; empty means AtLimitRefuse
	AtLimit string `json:"at_limit,omitempty"`
	// MaxAge is the age in seconds, from its last write, at which a memory is deleted, an hour or two later; 0 means
	// never. Until then every read returns the memory; only Memory.ExpiresAt hides it at once.
	MaxAge int64 `json:"max_age,omitempty"`

	// bytes of history that are kept in the archive, besides the log itself; default 256 MiB; 0 keeps none
	HistoryBytes *int64 `json:"history_bytes,omitempty"`
	// days after which history in the archive is removed; 0 means never
	HistoryDays int `json:"history_days,omitempty"`
	// UnsentBytes is the number of further bytes of history that are kept while a copy of the store elsewhere lacks
	// them; default 1 GiB; 0 keeps none.
	UnsentBytes *int64 `json:"unsent_bytes,omitempty"`
	// bytes of log that may not be in files yet before commits wait; default 96 MiB. A larger value allows a longer
	// burst and a longer recovery, not a higher throughput
	BacklogBytes int64 `json:"backlog_bytes,omitempty"`

	// TextLanguage is the language whose rules reduce words to their stems for search; empty means "en". The next flush
	// applies a change.
	TextLanguage string        `json:"text_language,omitempty"`
	Text         *TextConfig   `json:"text,omitempty"`
	Vectors      *VectorConfig `json:"vectors,omitempty"`

	// MemoryStore describes the store to the clients of the Memory Stores API: see package memorystores.
	MemoryStore *MemoryStoreConfig `json:"memory_store,omitempty"`
}

// MemoryStoreConfig describes a store to the clients of the Memory Stores API: see package memorystores.
type MemoryStoreConfig struct {
	ID          string            `json:"id"`                    // memstore_ and 32 letters and digits
	Name        string            `json:"name"`                  // 1 to 255 characters
	Description string            `json:"description,omitempty"` // at most 1,024 characters
	Metadata    map[string]string `json:"metadata,omitempty"`    // at most 16 pairs
	CreatedAt   time.Time         `json:"created_at,omitzero"`
	UpdatedAt   time.Time         `json:"updated_at,omitzero"`  // of name, description, metadata and archived_at
	ArchivedAt  time.Time         `json:"archived_at,omitzero"` // zero: the API may write
}

// The values of Config.AtLimit: what happens to a write that would exceed a limit.
const (
	AtLimitRefuse      = settings.AtLimitRefuse      // the write fails with ErrLimit
	AtLimitEvictOldest = settings.AtLimitEvictOldest // the memories written longest ago are deleted
	// AtLimitEvictLowest deletes the memories with the lowest quickrecal_score, and among those with an equal score
	// the oldest first.
	AtLimitEvictLowest = settings.AtLimitEvictLowest
)

// TextConfig selects the members of a memory's metadata that searches by words cover. The next flush applies a change.
// Before that flush, searches use the previous selection.
type TextConfig struct {
	// Fields names, for each field of a query, the members of the metadata that have its words. Fields that are not
	// listed have their default: speaker=speaker,author,name caption=caption title=title tag=tags category=category
	// key=key.
	Fields map[string][]string `json:"fields,omitempty"`
}

// VectorConfig fixes properties of the vectors. If Dimension is 0, the first embedding determines the dimension. If
// the existing vectors do not have the configured properties, the store rebuilds its vectors. A document whose
// embedding does not have these properties gets no vector.
type VectorConfig struct {
	Dimension int    `json:"dimension,omitempty"` // numbers of each vector; 0: the number of the first embedding
	Metric    string `json:"metric,omitempty"`    // "ip", the cosine, or "l2"; "ip" when empty
	Model     string `json:"model,omitempty"`     // the model that makes the embeddings, for information
	// Template selects the text of a memory that the next Vectors.Reembed embeds: "content", "turns" (the memory before
	// it in its session, speaker, content and caption), or a text such as "{previous} {speaker}: {content}". The
	// template in use is part of the model's name. When empty, the template in use does not change; a store's first
	// vectors are made with "turns" if a memory that gets one is in a session, else with "content". See
	// docs/howto/finding.md.
	Template string `json:"template,omitempty"`
	// QueryTemplate is the text that Vectors.Embed embeds for a query, such as "search_query: {query}", for models that
	// need one. Empty: the query unchanged. It is not part of the model's name: a change applies at once, and embeds no
	// memory again.
	QueryTemplate string `json:"query_template,omitempty"`
}

// toSettings returns c as the type of package settings, which has the same fields. configOf converts back.
func (c *Config) toSettings() *settings.Config {
	return &settings.Config{
		Format: c.Format, IndexBackupCount: c.IndexBackupCount, AutoRepair: c.AutoRepair, BackupInterval: c.BackupInterval,
		FlushThreshold: c.FlushThreshold, AdoptDeletions: c.AdoptDeletions, BlockPurged: c.BlockPurged,
		MaxMemoryBytes: c.MaxMemoryBytes,
		MaxIDBytes:     c.MaxIDBytes, MaxDepth: c.MaxDepth, MaxEmbeddingDims: c.MaxEmbeddingDims,
		MaxAssemblyMembers: c.MaxAssemblyMembers, ActivationHalfLife: c.ActivationHalfLife, MaxMemories: c.MaxMemories,
		MaxBytes: c.MaxBytes, MaxSessionMemories: c.MaxSessionMemories, MaxSessionBytes: c.MaxSessionBytes,
		AtLimit: c.AtLimit, MaxAge: c.MaxAge, HistoryBytes: c.HistoryBytes, HistoryDays: c.HistoryDays,
		UnsentBytes: c.UnsentBytes, BacklogBytes: c.BacklogBytes, TextLanguage: c.TextLanguage,
		NotesIgnore: c.NotesIgnore,
		Text:        (*settings.TextConfig)(c.Text),
		Vectors:     (*settings.VectorConfig)(c.Vectors),
		MemoryStore: (*settings.MemoryStoreConfig)(c.MemoryStore),
	}
}

func configOf(c *settings.Config) Config {
	return Config{
		Format: c.Format, IndexBackupCount: c.IndexBackupCount, AutoRepair: c.AutoRepair, BackupInterval: c.BackupInterval,
		FlushThreshold: c.FlushThreshold, AdoptDeletions: c.AdoptDeletions, BlockPurged: c.BlockPurged,
		MaxMemoryBytes: c.MaxMemoryBytes,
		MaxIDBytes:     c.MaxIDBytes, MaxDepth: c.MaxDepth, MaxEmbeddingDims: c.MaxEmbeddingDims,
		MaxAssemblyMembers: c.MaxAssemblyMembers, ActivationHalfLife: c.ActivationHalfLife, MaxMemories: c.MaxMemories,
		MaxBytes: c.MaxBytes, MaxSessionMemories: c.MaxSessionMemories, MaxSessionBytes: c.MaxSessionBytes,
		AtLimit: c.AtLimit, MaxAge: c.MaxAge, HistoryBytes: c.HistoryBytes, HistoryDays: c.HistoryDays,
		UnsentBytes: c.UnsentBytes, BacklogBytes: c.BacklogBytes, TextLanguage: c.TextLanguage, Text: (*TextConfig)(c.Text),
		Vectors: (*VectorConfig)(c.Vectors), NotesIgnore: c.NotesIgnore,
		MemoryStore: (*MemoryStoreConfig)(c.MemoryStore),
	}
}

// Resolved returns a copy of the configuration in which every unset member has its default.
func (c Config) Resolved() Config {
	d := c.toSettings().Resolved()
	return configOf(&d)
}

// Validate returns the first invalid setting as a *FieldError, or nil.
func (c *Config) Validate() error { return c.toSettings().Validate() }

// Config returns a copy of the store's configuration as last read. The store reads config.json again when the size or
// the time of the file changes. If the file is invalid, the store reports this and keeps the last valid configuration.
func (ad Admin) Config() Config {
	c := ad.st.inner.Engine.Settings().Now().Clone()
	return configOf(&c)
}

// SetConfig writes config.json. Other processes read the new file within a second. SetConfig writes every member of c,
// and so overwrites changes that another process made after c was read. Use UpdateConfig to change single members.
func (ad Admin) SetConfig(c Config) error {
	return ad.UpdateConfig(context.Background(), func(now *Config) error {
		*now = configOf(new(c.toSettings().Clone()))
		return nil
	})
}

// UpdateConfig reads config.json, changes it with the function change, and writes it. No other call of UpdateConfig
// changes the file meanwhile. An invalid member is replaced by its default. If a newer version of this library wrote
// the file, the error is ErrNewerFormat. If change returns an error, UpdateConfig returns it and writes nothing. change
// must not use the store. Other processes read the new file within a second.
func (ad Admin) UpdateConfig(ctx context.Context, change func(c *Config) error) error {
	if ad.st.inner.Engine.Env().ReadOnly {
		return ad.st.inner.Engine.Writable()
	}
	return ad.st.inner.Engine.UpdateSettings(ctx, func(c *settings.Config) error {
		own := configOf(c)
		if err := change(&own); err != nil {
			return err
		}
		*c = *own.toSettings()
		return nil
	})
}
