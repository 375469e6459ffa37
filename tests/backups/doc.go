// Package backups tests backups, restores, migrations, copies of folders, and what history keeps.
package backups
