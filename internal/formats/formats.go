package formats

import (
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// Format is one file format. This build reads all versions from Oldest to Writes. A store is written in the lowest
// version that supports its content, and Writes is the highest version that this build writes.
type Format struct {
	Name   string // name of the format, for messages and for JSON
	Files  string // paths of the files that have the format, relative to the store
	Writes int
	Oldest int
}

// All returns all formats of this build. Files that are not in the list have no format version of their own: the
// documents in memories/, assemblies/ and working/ are JSON, and the vectors are files of FAISS.
func All() []Format {
	return []Format{
		{"archive", "wal/archive/*.zst", past.ArchiveFormat, 1},
		{"backup", "backup.json of a backup", backup.BackupFormat, 1},
		{"checkpoint", "checkpoint", wal.CheckpointFormat, 1},
		{"config", settings.Name, settings.Format, 1},
		{"index", "memory_index.json", table.Format, 1},
		{"log", "wal/*.wal", segment.Version, 1},
		{"record", "values in the log", record.Version, 1},
	}
}

// Features returns the names of the features of a store that this build knows.
func Features() []string { return wal.KnownFeatures.Names() }
