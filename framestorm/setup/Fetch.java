package framestorm.setup;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import javax.inject.Inject;
import javax.inject.Named;
import javax.inject.Singleton;
import org.apache.maven.AbstractMavenLifecycleParticipant;
import org.apache.maven.MavenExecutionException;
import org.apache.maven.execution.MavenSession;
import org.eclipse.aether.RepositorySystem;
import org.eclipse.aether.artifact.DefaultArtifact;
import org.eclipse.aether.repository.RemoteRepository;
import org.eclipse.aether.resolution.ArtifactRequest;
import org.eclipse.aether.resolution.ArtifactResolutionException;
import org.eclipse.aether.resolution.ArtifactResult;

/**
 * An extension of Maven (maven.ext.class.path) that fetches the files of a list at once, by Maven's own settings.
 *
 * <p>Maven itself reads the POMs of all of them first, one after another: for JMeter 782, most of a set-up's time.
 *
 * <p>Properties: {@code jars.list}, a file with lines of a path and the coordinates of what is to be there; {@code
 * jars.home}, the folder of these paths.
 */
@Named
@Singleton
public final class Fetch extends AbstractMavenLifecycleParticipant {
    private final RepositorySystem system;

    @Inject
    public Fetch(RepositorySystem system) {
        this.system = system;
    }

    @Override
    public void afterProjectsRead(MavenSession session) throws MavenExecutionException {
        Path home = Paths.get(session.getUserProperties().getProperty("jars.home"));
        Path list = Paths.get(session.getUserProperties().getProperty("jars.list"));
        List<RemoteRepository> repositories = session.getCurrentProject().getRemoteProjectRepositories();
        try {
            List<Path> paths = new ArrayList<>();
            List<ArtifactRequest> requests = new ArrayList<>();
            for (String line : Files.readAllLines(list)) {
                String[] words = line.split(" ");
                paths.add(home.resolve(words[0]));
                requests.add(new ArtifactRequest(new DefaultArtifact(words[1]), repositories, null));
            }
            List<ArtifactResult> results = system.resolveArtifacts(session.getRepositorySession(), requests);
            for (int i = 0; i < paths.size(); i++) {
                Files.createDirectories(paths.get(i).getParent());
                Files.copy(results.get(i).getArtifact().getFile().toPath(), paths.get(i));
            }
        } catch (IOException | ArtifactResolutionException e) {
            throw new MavenExecutionException(e.getMessage(), e);
        }
    }
}
