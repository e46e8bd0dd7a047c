/** The settings {@code dfs.leeward.*}, read strictly: a misspelt name or value never becomes a default in silence. */
package dev.leeward.hdfs.settings;
