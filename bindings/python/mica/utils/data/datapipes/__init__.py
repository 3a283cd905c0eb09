"""mica.utils.data.datapipes: pipes that are iterated over (iter) and pipes that are indexed (map)."""

from mica.utils.data.datapipes import iter as iter, map as map
