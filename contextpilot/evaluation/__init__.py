"""Does a context policy help? Rows, statistics, tables, plots and the report on them."""
