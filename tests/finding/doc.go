// Package finding tests search, listing and assemblies.
package finding
