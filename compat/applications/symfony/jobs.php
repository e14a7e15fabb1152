<?php
// The console of a small Symfony application that has jobs.

declare(strict_types=1);

namespace App;

require_once 'Symfony/Bundle/FrameworkBundle/autoload.php';
require_once 'Symfony/Component/Console/autoload.php';
require_once 'Symfony/Component/Messenger/autoload.php';
require_once 'Symfony/Component/Yaml/autoload.php';

use Symfony\Bundle\FrameworkBundle\Console\Application;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\EventDispatcher\Attribute\AsEventListener;
use Symfony\Component\HttpKernel\Kernel;
use Symfony\Component\Messenger\Attribute\AsMessageHandler;
use Symfony\Component\Messenger\Event\WorkerStartedEvent;
use Symfony\Component\Messenger\Exception\RecoverableMessageHandlingException;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\DelayStamp;

final class Job
{
    public function __construct(public readonly int $number, public readonly string $payload)
    {
    }
}

#[AsMessageHandler]
final class Work
{
    private bool $hasFailed = false;

    public function __invoke(Job $job): void
    {
        usleep(5000);
        // Messenger sends such a job again, with a delay.
        if ($job->number === 1 && !$this->hasFailed) {
            $this->hasFailed = true;
            throw new RecoverableMessageHandlingException('try again later');
        }
        $digest = substr(hash('sha256', $job->payload), 0, 8);
        echo "done $job->number $digest\n";
    }
}

#[AsEventListener]
final class Report
{
    public function __invoke(WorkerStartedEvent $event): void
    {
        echo "ready\n";
    }
}

#[AsCommand('submit')]
final class Submit extends Command
{
    public function __construct(private MessageBusInterface $bus)
    {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->addArgument('first', InputArgument::REQUIRED);
        $this->addArgument('count', InputArgument::REQUIRED);
        $this->addArgument('size', InputArgument::REQUIRED);
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        [$first, $count, $size] = array_map(fn ($name) => (int) $input->getArgument($name), ['first', 'count', 'size']);
        for ($number = $first; $number < $first + $count; $number++) {
            // Only the first: RabbitMQ may lose the jobs of a queue of delays when it is killed.
            $stamps = $number < 5 ? [new DelayStamp(50)] : [];
            $this->bus->dispatch(new Job($number, str_repeat('x', $size)), $stamps);
            $output->writeln("accepted $number");
            usleep(5000);
        }

        return Command::SUCCESS;
    }
}

final class Jobs extends Kernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        return [new FrameworkBundle()];
    }

    public function getProjectDir(): string
    {
        return __DIR__;
    }

    private function getConfigDir(): string
    {
        return __DIR__;
    }

    private function configureContainer(ContainerConfigurator $container): void
    {
        $container->import('messenger.yaml');
        $services = $container->services()->defaults()->autowire()->autoconfigure();
        foreach ([Work::class, Report::class, Submit::class] as $class) {
            $services->set($class);
        }
    }
}

(new Application(new Jobs('prod', debug: false)))->run();
