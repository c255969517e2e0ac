// Package azure is the source in a container of Azure Blob Storage or Data Lake Storage Gen2:
// abfss://<container>@<account>.dfs.core.windows.net/<path>/<db>/<version>/<files>. It is the Blob API of Azure for package
// objects, which owns everything else. Accounts with a hierarchical namespace answer that API too.
//
// Objects are identified by their ETags.
//
// # Directories
//
// A hierarchical namespace has directories, which exist without files; Hadoop's older file system for Azure (WASB) keeps an
// empty blob of a directory's name. Both are listed as blobs with the metadata hdi_isfolder, and are no files.
//
// # Credentials
//
// In this order: a key of the account or a SAS token of the options, those of the environment if they are for this account,
// and an identity of Microsoft Entra: a client secret or certificate, a workload identity, or the managed
// identity of the machine. Which one is chosen follows from what is set, not from what succeeds. The Azure CLI is not asked:
// its tokens are those of a person, and it would run as a child of load processes, under their limits.
package azure
